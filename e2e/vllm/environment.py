"""Where the environment is, and whether it is finished."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from e2e.vllm.errors import NotSetUpError

VERSION: Final = "0.32.0"
REQUIREMENTS: Final = Path(__file__).with_name("requirements.txt")
CONVERTER: Final = Path(__file__).with_name("convert.py")


def cache_root() -> Path:
    """The project's cache folder: `WARMFRONT_CACHE`, else `~/.cache/warmfront`."""
    return Path(os.environ.get("WARMFRONT_CACHE") or Path.home() / ".cache" / "warmfront")


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One set-up, finished or not. Everything is below `root`."""

    root: Path

    @property
    def venv(self) -> Path:
        """The virtual environment."""
        return self.root / "venv"

    @property
    def python(self) -> Path:
        """Its interpreter: a link to the machine's own Python, so that a pod whose image has one there can mount it."""
        return self.venv / "bin" / "python"

    @property
    def model(self) -> Path:
        """The folder of the converted SmolLM2-135M-Instruct."""
        return self.root / "SmolLM2-135M-Instruct"

    @property
    def log(self) -> Path:
        """What the commands of the set-up printed."""
        return self.root / "setup.log"

    @property
    def marker(self) -> Path:
        """Written last: a folder without it is what a set-up left that did not end."""
        return self.root / "ready.json"

    @property
    def is_ready(self) -> bool:
        """Whether it is finished, and made of today's recipe."""
        try:
            return bool(json.loads(self.marker.read_text()) == self.stamp())
        except (OSError, ValueError):
            return False

    def stamp(self) -> dict[str, Any]:
        """What the marker says: a change of the recipe makes an old environment unfinished."""
        sources = b"".join(path.read_bytes() for path in (REQUIREMENTS, CONVERTER))
        return {"vllm": VERSION, "recipe": hashlib.sha256(sources).hexdigest()}

    def paths(self) -> dict[str, str]:
        """Interpreter and model, for who starts it.

        Raises:
            NotSetUpError: It is not finished.
        """
        if not self.is_ready:
            raise NotSetUpError(
                f"no finished vLLM environment in {self.root}: run `python -m e2e.vllm setup` (about 5 minutes, 6.5 GB)"
            )
        return {"python": str(self.python), "model": str(self.model)}


def default_environment() -> Environment:
    """The environment in the project's cache folder."""
    return Environment(root=cache_root() / f"vllm-{VERSION}")
