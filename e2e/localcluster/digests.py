"""Keys of cached things, made of what they are built from."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

_KEY_LENGTH = 16
_IGNORED = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


def files_below(path: Path) -> Iterator[Path]:
    """A file itself, or every file of a folder in a fixed order, less caches."""
    if path.is_file():
        yield path
        return
    for child in sorted(path.iterdir()):
        if child.name not in _IGNORED and not child.name.endswith(".pyc"):
            yield from files_below(child)


def digest(root: Path, sources: Iterable[str], extra: Iterable[str] = ()) -> str:
    """A short key over the names and contents of files, and over further words.

    Args:
        root: what `sources` are relative to, so that the same tree elsewhere has the same key.
        sources: files and folders; one that is missing counts as such.
        extra: what else decides the result, such as versions and the keys of things built upon.
    """
    total = hashlib.sha256()
    for source in sources:
        path = root / source
        for file in files_below(path) if path.exists() else ():
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            total.update(f"{file.relative_to(root)}\0{content}\0".encode())
        total.update(f"{source}\0".encode())
    for word in extra:
        total.update(f"{word}\0".encode())
    return total.hexdigest()[:_KEY_LENGTH]
