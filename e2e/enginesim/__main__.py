"""`python -m e2e.enginesim`: start up in phases, serve, end at once on SIGTERM."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Sequence

import uvloop
from aiohttp import web
from pydantic import ValidationError

from e2e.enginesim.app import Server
from e2e.enginesim.errors import ConfigurationError
from e2e.enginesim.settings import HardwareSettings, ServerFlags, parse_flags

log = logging.getLogger("enginesim")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulator; 2 when its settings are wrong."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        uvloop.run(_serve(parse_flags(sys.argv[1:] if argv is None else argv), HardwareSettings()))
    except (ConfigurationError, ValidationError) as error:
        log.error("the engine cannot start: %s", error)  # noqa: TRY400 - the message says it all
        return 2
    return 0


async def _serve(flags: ServerFlags, hardware: HardwareSettings) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = Server(flags, hardware, clock=asyncio.get_running_loop().time)
    # Taken before the start-up, as vLLM does: a busy port fails at once, and connections are refused until it listens.
    bound = _bind(flags.host, flags.port)
    if not await _start_up(hardware, stopped):
        return
    # Cancelling handlers whose client is gone is what frees their KV. Streams are cut at the end, as vLLM cuts them.
    runner = web.AppRunner(server.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.SockSite(runner, bound, backlog=2048).start()
        log.info("serving %s on %s:%d", flags.names[0], *bound.getsockname()[:2])
        await stopped.wait()
    finally:
        await runner.cleanup()


async def _start_up(hardware: HardwareSettings, stopped: asyncio.Event) -> bool:
    """Pass the phases; False when told to stop in the middle of one."""
    phases = {
        "loading weights": hardware.load_seconds,
        "compiling": hardware.compile_seconds,
        "capturing graphs": hardware.capture_seconds,
    }
    for name, seconds in phases.items():
        log.info("%s: %g s", name, seconds)
        try:
            await asyncio.wait_for(stopped.wait(), timeout=seconds)
        except TimeoutError:
            continue
        return False
    return True


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        raise ConfigurationError(f"cannot listen on {host}:{port} ({error}): choose another --host or --port") from error
    return bound


if __name__ == "__main__":
    raise SystemExit(main())
