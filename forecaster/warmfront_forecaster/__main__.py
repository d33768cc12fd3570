"""`warmfront forecaster`: serve forecasts until SIGTERM."""

import argparse
import signal
import sys
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Final, NoReturn

import uvicorn
from pydantic import ValidationError

from warmfront_api import logs
from warmfront_forecaster.adapters.prometheus_client import connect
from warmfront_forecaster.adapters.prometheus_source import PrometheusSource
from warmfront_forecaster.app import make_app
from warmfront_forecaster.fitting import run
from warmfront_forecaster.settings import ENV_PREFIX, Settings
from warmfront_forecaster.workers import Workers

GRACE_SECONDS = 5  # for answers under way; they take milliseconds

QUIET: Final = {"urllib3.connectionpool": "ERROR"}  # its retries; what fails is said by us, once


def main(argv: Sequence[str] | None = None) -> int:
    """Run the forecaster; 2 when a setting is wrong."""
    parser = argparse.ArgumentParser(
        prog="warmfront forecaster", description="Serve demand forecasts. Settings: WARMFRONT_FORECASTER_* in the environment."
    )
    parser.parse_args(argv)
    try:
        settings = Settings()
    except ValidationError as error:
        print(_settings_message(error), file=sys.stderr)
        return 2
    logs.configure(settings.log_level, settings.log_format, quiet=QUIET)
    serve(settings)
    return 0


def _settings_message(error: ValidationError) -> str:
    """One line for each wrong setting: its variable, what it may be, and what it is."""
    return "\n".join(
        f"warmfront forecaster: {ENV_PREFIX}{str(wrong['loc'][0]).upper()}: {wrong['msg']}, not {wrong['input']!r}"
        for wrong in error.errors()
    )


def serve(settings: Settings) -> None:
    """Serve until a signal; uvicorn handles SIGTERM and SIGINT and lets answers under way finish."""
    # uvicorn lets answers finish and then raises the signal again, for whoever had it before; unanswered, it would end
    # the process before the workers are.
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    workers = Workers(settings.workers, settings.fit_timeout_seconds)
    with connect(settings.endpoint()) as client:
        app = make_app(settings=settings, source=PrometheusSource(client), fit=partial(workers.run, run))
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,  # four lines a minute that say nothing
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        try:
            uvicorn.Server(config).run()
        finally:
            workers.close()


def _leave(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
