"""How the real vLLM is started: the command and its environment variables, for tests and for pods."""

from collections.abc import Mapping
from typing import Final

# Two GB hold some 90,000 KV tokens of the 135M model. Nothing may ask the network, and nothing is reported.
VARIABLES: Final[Mapping[str, str]] = {
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}


def serve_command(python: str, model: str, *, port: int, name: str = "smollm2", host: str = "127.0.0.1") -> list[str]:
    """The server. Without torch.compile it is up in a minute instead of three; the `vllm` command itself does not start here."""
    return [
        python,
        *("-m", "vllm.entrypoints.openai.api_server"),
        *("--model", model),
        *("--served-model-name", name),
        *("--host", host),
        *("--port", str(port)),
        *("--dtype", "bfloat16"),
        *("--max-model-len", "2048"),
        *("--max-num-seqs", "16"),
        "--enforce-eager",
    ]
