"""Brings the pod up and watches its engine: one tick after the other, each a probe and what follows from it."""

import asyncio
import logging

from aiohttp import ClientError

from warmfront_api.workload import Warmup
from warmfront_runtime.gateway.engine import EngineClient
from warmfront_runtime.gateway.lifecycle import State
from warmfront_runtime.gateway.pod import Pod
from warmfront_runtime.warmup.run import warm_up

logger = logging.getLogger(__name__)

TICK_STARTING_SECONDS = 0.25  # the resolution of the timed phases
TICK_SERVING_SECONDS = 1.0


class Supervisor:
    """Moves the pod's lifecycle by what the engine does. Runs until cancelled."""

    def __init__(self, *, pod: Pod, engine: EngineClient, model: str, warmup: Warmup) -> None:
        self._pod = pod
        self._engine = engine
        self._model = model
        self._warmup = warmup
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Tick for ever."""
        try:
            while True:
                await self.tick()
                await asyncio.sleep(TICK_SERVING_SECONDS if self._pod.lifecycle.ready else TICK_STARTING_SECONDS)
        finally:
            self._end_warmup()

    async def tick(self) -> None:
        """One probe of the engine."""
        probe = await self._engine.health()
        now = self._pod.clock()
        self._pod.watch.record(probe, now)
        if self._pod.lifecycle.draining:
            self._end_warmup()
        elif self._pod.watch.lost(now):
            self._lose_engine(now)
        elif self._pod.watch.healthy:
            self._advance(now)

    def _advance(self, now: float) -> None:
        """The engine is healthy: start the warm-up, take its end, or go on without it."""
        lifecycle = self._pod.lifecycle
        if lifecycle.state is State.STARTING:
            logger.info("the engine answers, %.1f s after the start", now - lifecycle.began)
            self._pod.move(lifecycle.engine_up(now))
            self._task = asyncio.create_task(self._warm())
        elif self._task is not None and self._task.done():
            self._take_end(self._task)
        elif lifecycle.state is State.WARMING and lifecycle.overdue(now, self._warmup.timeout_seconds):
            logger.warning("not warm after %d s; the engine is healthy, so it serves", self._warmup.timeout_seconds)
            self._pod.move(lifecycle.serve_cold(now))

    def _take_end(self, task: asyncio.Task[None]) -> None:
        self._task = None
        task.result()  # a bug in the warm-up ends the process, not just the warm-up

    async def _warm(self) -> None:
        await warm_up(self._engine, model=self._model, prompts=self._warmup.prompts)
        await self._learn_models()
        if not self._pod.lifecycle.draining:
            self._pod.move(self._pod.lifecycle.warmed(self._pod.clock()))
            logger.info("warm; phases in seconds: %s", self._pod.lifecycle.phase_seconds)

    async def _learn_models(self) -> None:
        """Adapters have names of their own, which only the engine knows."""
        try:
            self._pod.served_models |= await self._engine.model_names()
        except ClientError as error:
            logger.warning("the engine's models could not be listed: %s", error)

    def _lose_engine(self, now: float) -> None:
        self._end_warmup()
        if self._pod.lifecycle.state is not State.STARTING:
            logger.warning("the engine is lost (%s); not ready until it is up and warm again", self._pod.watch.last)
        self._pod.move(self._pod.lifecycle.engine_lost(now))

    def _end_warmup(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
