"""What a target of a Dockerfile is made of: the stages that it needs, and the files that they copy in."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from e2e.localcluster.errors import LocalClusterError

_BEGIN = re.compile(r"FROM (?P<base>\S+)(?: AS (?P<name>\S+))?", re.IGNORECASE)
_TAKEN = re.compile(r"(?:--|,)from=([^\s,]+)")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The instructions that lead to a target, and the files and folders of the context that they copy in."""

    instructions: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage: what it is built upon, and its instructions."""

    base: str
    instructions: tuple[str, ...]

    def needs(self) -> list[str]:
        """What it is built upon or takes files from: names of stages, and of images."""
        return [self.base, *(name for line in self.instructions for name in _TAKEN.findall(line))]


def instructions(text: str) -> list[str]:
    """One line each, without comments and with single blanks."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [" ".join(line.split()) for line in joined.splitlines() if line.strip()]


def stages(text: str) -> dict[str, Stage]:
    """Every stage by its name, or by its number where it has none; what stands before the first is the stage ''."""
    found = {"": Stage(base="", instructions=())}
    for line in instructions(text):
        if begin := _BEGIN.fullmatch(line):
            found[begin["name"] or str(len(found) - 1)] = Stage(base=begin["base"], instructions=(line,))
        else:
            name, last = found.popitem()
            found[name] = Stage(base=last.base, instructions=(*last.instructions, line))
    return found


def needed(known: Mapping[str, Stage], target: str) -> set[str]:
    """A stage and all that it needs, however far."""
    found: set[str] = set()
    waiting = ["", target]
    while waiting:
        name = waiting.pop()
        if name in known and name not in found:
            found.add(name)
            waiting += known[name].needs()
    return found


def copied(line: str) -> Iterator[str]:
    """The files and folders of the context that an instruction copies in."""
    word, *rest = line.split()
    if word in ("COPY", "ADD") and not _TAKEN.search(line):
        yield from [path for path in rest if not path.startswith("--")][:-1]


def recipe(text: str, target: str | None) -> Recipe:
    """What leads to a target; None is the last stage.

    Raises:
        LocalClusterError: there is no such stage.
    """
    known = stages(text)
    chosen = list(known)[-1] if target is None else target
    if chosen not in known:
        raise LocalClusterError(f"The Dockerfile has no stage {chosen}; there are {', '.join(filter(None, known))}.")
    wanted = needed(known, chosen)
    lines = tuple(line for name, stage in known.items() if name in wanted for line in stage.instructions)
    return Recipe(instructions=lines, sources=tuple(dict.fromkeys(path for line in lines for path in copied(line))))
