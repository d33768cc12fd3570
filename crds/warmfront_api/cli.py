"""The `warmfront` command. Subcommands are loaded only when asked for: each component has its own extra."""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Subcommand:
    """One subcommand: the module whose `main(argv) -> int` runs it, and the extra that brings what it imports."""

    module: str
    extra: str
    help: str


SUBCOMMANDS = {
    "crds": Subcommand(module="warmfront_api.generate", extra="", help="print the CustomResourceDefinitions"),
    "operator": Subcommand(module="warmfront_operator.__main__", extra="operator", help="run the operator"),
    "forecaster": Subcommand(module="warmfront_forecaster.__main__", extra="forecaster", help="run the forecaster"),
    "capacity": Subcommand(
        module="warmfront_forecaster.commands.capacity", extra="forecaster", help="how much of a replica is usable"
    ),
    "gateway": Subcommand(module="warmfront_runtime.gateway.__main__", extra="runtime", help="run the in-pod gateway"),
}

OUR_PACKAGES = ("warmfront_api", "warmfront_operator", "warmfront_forecaster", "warmfront_runtime")


INTERRUPTED = 130  # as shells say it: 128 + SIGINT


def usage() -> str:
    """The text of `warmfront --help`."""
    width = max(map(len, SUBCOMMANDS))
    lines = [f"  {name:<{width}}  {sub.help}" for name, sub in SUBCOMMANDS.items()]
    return "\n".join(["usage: warmfront COMMAND [ARGUMENT ...]", "", "commands:", *lines])


def missing_extra_message(name: str, subcommand: Subcommand, missing: str) -> str:
    """What to install when a subcommand's dependency is absent."""
    mend = f"pip install 'warmfront[{subcommand.extra}]'"
    return f"warmfront {name}: the package {missing!r} is not installed. Install it with: {mend}"


def run(name: str, argv: Sequence[str]) -> int:
    """Run one subcommand; 2 when its extra is not installed."""
    subcommand = SUBCOMMANDS[name]
    try:
        module = importlib.import_module(subcommand.module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing in OUR_PACKAGES or not subcommand.extra:
            raise  # our own fault, not a missing extra
        print(missing_extra_message(name, subcommand, missing), file=sys.stderr)
        return 2
    return int(module.main(list(argv)))


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console command. Returns the exit status."""
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if args else 2
    if args[0] in ("-V", "--version", "version"):
        from importlib.metadata import version

        print(version("warmfront"))
        return 0
    if args[0] not in SUBCOMMANDS:
        print(f"warmfront: unknown command {args[0]!r}\n\n{usage()}", file=sys.stderr)
        return 2
    try:
        return run(args[0], args[1:])
    except KeyboardInterrupt:  # whoever pressed Ctrl-C knows it; imports take seconds, so it may come before a command begins
        return INTERRUPTED
