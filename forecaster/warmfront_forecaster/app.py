"""The HTTP API."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from warmfront_forecaster.contract import FORECASTS_PATH, ForecastsRequest, ForecastsResponse
from warmfront_forecaster.domain.evaluation import Evaluation
from warmfront_forecaster.fitting import FitJob
from warmfront_forecaster.metrics import Metrics
from warmfront_forecaster.service import Forecaster, Source
from warmfront_forecaster.settings import Settings

LOG = logging.getLogger(__name__)


def make_app(
    *,
    settings: Settings,
    source: Source,
    fit: Callable[[FitJob], Awaitable[Evaluation]],
    clock: Callable[[], float] = time.time,
) -> FastAPI:
    """The app; its loop runs as long as its lifespan.

    Args:
        settings: of the process.
        source: where history comes from.
        fit: evaluates one service, elsewhere.
        clock: Unix seconds.
    """
    metrics = Metrics()
    forecaster = Forecaster(source=source, fit=fit, settings=settings, metrics=metrics, clock=clock)
    app = FastAPI(title="Warmfront forecaster", docs_url=None, redoc_url=None, lifespan=partial(_lifespan, forecaster))
    app.state.forecaster = forecaster

    @app.post(FORECASTS_PATH)
    async def forecasts(request: ForecastsRequest) -> ForecastsResponse:
        return forecaster.forecasts(request)

    @app.get("/healthz")
    async def healthz() -> Response:
        return _said(forecaster.alive)

    @app.get("/readyz")
    async def readyz() -> Response:
        # Not a question of Prometheus: without it, the answers say that it is away.
        return _said(forecaster.alive)

    @app.get("/metrics")
    async def show_metrics() -> Response:
        forecaster.show_metrics()
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return app


def _said(good: bool) -> Response:  # noqa: FBT001 - it is the whole question
    return Response("ok\n" if good else "the loop is stuck\n", status_code=200 if good else 503, media_type="text/plain")


@contextlib.asynccontextmanager
async def _lifespan(forecaster: Forecaster, _app: FastAPI) -> AsyncIterator[None]:
    loop = asyncio.create_task(forecaster.run())
    loop.add_done_callback(_complain)
    try:
        yield
    finally:
        loop.cancel()
        forecaster.close()
        with contextlib.suppress(asyncio.CancelledError):
            await loop


def _complain(loop: "asyncio.Task[None]") -> None:
    if not loop.cancelled() and (error := loop.exception()) is not None:
        LOG.critical("the forecaster's loop ended; /healthz will say so", exc_info=error)
