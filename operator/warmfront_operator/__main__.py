"""`warmfront operator`: reads the settings, waits for the API, runs until SIGTERM."""

import argparse
import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from importlib import metadata
from typing import Any, Final

import kopf
from pydantic import ValidationError

from warmfront_api import logs, names
from warmfront_forecaster.adapters.prometheus_client import PrometheusEndpoint, connect
from warmfront_operator import handlers, health
from warmfront_operator.domain.template import GatewayImage
from warmfront_operator.errors import KubeError, OperatorError
from warmfront_operator.handlers import Wiring
from warmfront_operator.health import Heartbeat
from warmfront_operator.kube import forecasts
from warmfront_operator.kube.access import configuration
from warmfront_operator.kube.client import Kube
from warmfront_operator.kube.events import Recorder
from warmfront_operator.kube.forecasts import ForecastSource
from warmfront_operator.kube.observe import Observed
from warmfront_operator.kube.prometheus import DemandSource
from warmfront_operator.reconcile import Reconciler
from warmfront_operator.settings import ENV_PREFIX, Settings
from warmfront_operator.tick import Ticker

LOG = logging.getLogger("warmfront_operator")

# For peering, which is off. kopf's own guess asks for the name of the user, and an image has none for 65532.
IDENTITY: Final[Any] = "warmfront-operator"
# kopf tells each step of its own at INFO, the clients each request, and urllib3 warns of every try at a Prometheus that is away:
# what fails in the end is said by us, once.
QUIET: Final = dict.fromkeys(("kopf", "httpx", "httpcore", "asyncio"), "WARNING") | {"urllib3": "ERROR"}
API_RETRY_SECONDS: Final = 2.0
LAST_PASS_SECONDS: Final = 15.0  # of the pod's grace period, for the pass that runs


def main(argv: Sequence[str]) -> int:
    """Run the operator. Returns the exit status: 0 after SIGTERM, 1 after a failure, 2 for wrong settings."""
    parser = argparse.ArgumentParser(
        prog="warmfront operator", description=f"All settings are in the environment: {ENV_PREFIX}*."
    )
    parser.parse_args(list(argv))
    try:
        settings = Settings()
    except ValidationError as error:
        print(_settings_message(error), file=sys.stderr)
        return 2
    quiet = {} if settings.log_level == "DEBUG" else QUIET
    logs.configure(settings.log_level, settings.log_format, quiet=quiet)
    try:
        asyncio.run(run(settings))
    except OperatorError as error:
        LOG.error("%s", error)  # noqa: TRY400 - the message says what to do, a traceback does not
        return 1
    except Exception:
        LOG.exception("the operator ends: its Deployment starts it again")
        return 1
    return 0


def _settings_message(error: ValidationError) -> str:
    wrong = [f"  {ENV_PREFIX}{str(item['loc'][0]).upper()}: {item['msg']}" for item in error.errors() if item["loc"]]
    return "\n".join(["warmfront operator: wrong settings in the environment:", *wrong])


async def run(settings: Settings) -> None:
    """Run until SIGTERM.

    Raises:
        OperatorError: no API server is configured.
        Exception: whatever ended the tick loop or the watches.
    """
    _tell_start(settings)
    heartbeat = Heartbeat.for_ticks(settings.tick_seconds)
    health.serve(heartbeat, settings.metrics_host, settings.metrics_port)
    async with _clients(settings) as (kube, source):
        await _wait_for_api(kube, heartbeat)
        await _operate(settings, kube, source, heartbeat)


def _tell_start(settings: Settings) -> None:
    """Log what runs. Addresses are left out: they may carry a password."""
    LOG.info(
        "warmfront operator %s: namespaces %s, a tick every %g s, Prometheus %s, forecaster %s, gateway %s",
        metadata.version("warmfront"),
        ", ".join(settings.namespaces) or "all",
        settings.tick_seconds,
        "configured" if settings.prometheus_url else "not configured",
        "configured" if settings.forecaster_url else "not configured",
        settings.gateway_image,
    )


@contextlib.asynccontextmanager
async def _clients(settings: Settings) -> AsyncIterator[tuple[Kube, ForecastSource]]:
    kube = Kube.connect(await configuration(), settings.kube_timeout_seconds)
    try:
        async with forecasts.connect(settings.forecaster_url, settings.forecaster_timeout_seconds) as http:
            yield kube, ForecastSource(client=http if settings.forecaster_url else None)
    finally:
        await kube.close()


async def _wait_for_api(kube: Kube, heartbeat: Heartbeat) -> None:
    """Wait until the API server answers and knows InferenceServices: kopf looks only once."""
    told = ""
    while message := await _missing(kube):
        if message != told:
            LOG.warning("%s", message)
            told = message
        heartbeat.beat()
        await asyncio.sleep(API_RETRY_SECONDS)


async def _missing(kube: Kube) -> str:
    try:
        served = await kube.served(names.KIND)
    except KubeError as error:
        return f"waiting for the API server: {error}"
    return "" if served else "waiting for the CustomResourceDefinition inferenceservices.warmfront.dev: install warmfront-crds"


async def _operate(settings: Settings, kube: Kube, source: ForecastSource, heartbeat: Heartbeat) -> None:
    """Run kopf, which feeds the ticks, until either ends; then let the pass that runs come to its end."""
    ticker = _ticker(settings, kube, source, heartbeat)
    stop = asyncio.Event()
    ticks = asyncio.create_task(ticker.run(), name="ticks")  # before kopf, which cancels what is created after it
    ticks.add_done_callback(lambda _: stop.set())  # without ticks there is nothing left to do
    try:
        await kopf.operator(
            registry=handlers.REGISTRY,
            settings=handlers.settings(),
            memo=Wiring(ticker=ticker),
            identity=IDENTITY,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            standalone=True,
            stop_flag=stop,
        )
    finally:
        ticker.stop()
        await asyncio.wait_for(ticks, LAST_PASS_SECONDS)


def _ticker(settings: Settings, kube: Kube, source: ForecastSource, heartbeat: Heartbeat) -> Ticker:
    observed = Observed()
    reconciler = Reconciler(
        kube=kube,
        observed=observed,
        recorder=Recorder(kube),
        gateway=GatewayImage(image=settings.gateway_image, pull_policy=settings.gateway_image_pull_policy),
        tick_seconds=settings.tick_seconds,
    )
    return Ticker(
        reconciler=reconciler,
        observed=observed,
        demand=_demand(settings),
        forecasts=source,
        namespaces=settings.namespaces,
        tick_seconds=settings.tick_seconds,
        concurrency=settings.concurrency,
        on_alive=heartbeat.beat,
    )


def _demand(settings: Settings) -> DemandSource:
    endpoint = PrometheusEndpoint(
        url=settings.prometheus_url,
        token_file=settings.prometheus_token_file,
        ca_file=settings.prometheus_ca_file,
        tenant_header=settings.prometheus_tenant_header,
        tenant=settings.prometheus_tenant,
        timeout_seconds=settings.prometheus_timeout_seconds,
    )
    return DemandSource(
        client=connect(endpoint) if settings.prometheus_url else None,
        window_seconds=settings.rate_window_seconds,
        timeout_seconds=settings.prometheus_timeout_seconds,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
