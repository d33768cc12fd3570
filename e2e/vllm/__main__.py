"""`python -m e2e.vllm setup` builds the environment, `path` prints where it is. Standard library only."""

import json
import shlex
import sys
from collections.abc import Sequence

from e2e.vllm.environment import default_environment
from e2e.vllm.errors import VllmSetupError
from e2e.vllm.launch import VARIABLES, serve_command
from e2e.vllm.setup import set_up

USAGE = """usage: python -m e2e.vllm COMMAND

  setup   build the virtual environment and the model (about 5 minutes, 6.5 GB); does nothing when they are there
  path    print JSON {"python", "model"}
  serve   print the command that starts the server on port 8000"""


def main(argv: Sequence[str]) -> int:
    """Run one command; 1 when it could not be done."""
    environment = default_environment()
    try:
        match list(argv):
            case ["setup"]:
                set_up(environment)
                print(json.dumps(environment.paths()))
            case ["path"]:
                print(json.dumps(environment.paths()))
            case ["serve"]:
                print(_serve_line(**environment.paths()))
            case _:
                print(USAGE, file=sys.stderr)
                return 2
    except VllmSetupError as error:
        print(f"e2e.vllm: {error}", file=sys.stderr)
        return 1
    return 0


def _serve_line(python: str, model: str) -> str:
    variables = [f"{name}={value}" for name, value in VARIABLES.items()]
    return shlex.join([*variables, *serve_command(python, model, port=8000)])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
