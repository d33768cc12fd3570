"""`warmfront gateway`: the process in the pod."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Final

import uvloop

from warmfront_api import logs
from warmfront_runtime.errors import ConfigError
from warmfront_runtime.gateway.serve import serve
from warmfront_runtime.settings import ENV_PREFIX, load_config, load_settings

# Broken HTTP from outside is answered 400 and would fill the log with tracebacks; our own failures are logged by us.
QUIET: Final = {"aiohttp.server": "CRITICAL"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the gateway until SIGTERM. 0: drained; 2: it cannot start as configured."""
    argparse.ArgumentParser(
        prog="warmfront gateway",
        description=f"The OpenAI-compatible gateway of one pod. Settings come from {ENV_PREFIX}* (docs/reference/gateway.md).",
    ).parse_args(argv)
    try:
        settings = load_settings()
        config = load_config(settings.config)
        logs.configure(settings.log_level, settings.log_format, quiet=QUIET)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings, config))
    except ConfigError as error:
        print(f"warmfront gateway: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
