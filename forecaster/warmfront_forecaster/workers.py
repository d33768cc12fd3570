"""Worker processes: what runs in them may hang, crash or eat memory, and the service goes on."""

import asyncio
import contextlib
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from warmfront_forecaster.errors import WorkerError

Job = TypeVar("Job")
Result = TypeVar("Result")

NICENESS = 10  # answers come first


class Workers:
    """A number of single-process pools, so that killing one that hangs takes nobody else's work with it."""

    def __init__(self, count: int, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._idle: asyncio.Queue[_Worker] = asyncio.Queue()
        self._all = [_Worker() for _ in range(count)]
        for worker in self._all:
            self._idle.put_nowait(worker)

    async def run(self, function: Callable[[Job], Result], job: Job) -> Result:
        """`function(job)` in the next free worker; both cross by pickle. What it raises is raised here.

        Raises:
            WorkerError: it took longer than the timeout (and was killed), or its process died.
        """
        async with self._free() as worker:
            return await worker.run(function, job, self._timeout_seconds)

    def close(self) -> None:
        """Kill what still runs."""
        for worker in self._all:
            worker.kill()

    @contextlib.asynccontextmanager
    async def _free(self) -> "AsyncIterator[_Worker]":
        worker = await self._idle.get()
        try:
            yield worker
        finally:
            self._idle.put_nowait(worker)


class _Worker:
    """One process, started when first needed, and again after it had to be killed."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")  # fork would copy threads' locks in mid-air
        self._pool: ProcessPoolExecutor | None = None
        self._pids = self._context.SimpleQueue()

    async def run(self, function: Callable[[Job], Result], job: Job, timeout_seconds: float) -> Result:
        try:
            async with asyncio.timeout(timeout_seconds):
                return await asyncio.wrap_future(self._started().submit(function, job))
        except TimeoutError as error:
            self.kill()
            raise WorkerError(f"the fit took longer than {timeout_seconds:.0f} s and was ended") from error
        except BrokenProcessPool as error:
            self.kill()
            raise WorkerError("the worker process died (out of memory?)") from error
        except asyncio.CancelledError:
            self.kill()
            raise

    def kill(self) -> None:
        """End the process and what it started (Stan is a process of its own); the next job gets a new one."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        while not self._pids.empty():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pids.get(), signal.SIGKILL)
        pool.shutdown(wait=False, cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=self._context, initializer=_begin, initargs=(self._pids,))
        return self._pool


def _begin(pids: "multiprocessing.SimpleQueue[int]") -> None:
    """First thing in a worker: a process group of its own, which can be killed whole, and no part in the console's Ctrl-C."""
    os.setsid()
    os.nice(NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pids.put(os.getpid())
