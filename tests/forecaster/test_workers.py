"""Real worker processes: one that hangs or dies is replaced, and what a job raises comes back.

Jobs are functions of the standard library: a worker cannot import a test module.
"""

import math
import os
import time
from collections.abc import Iterator

import pytest

from warmfront_forecaster.errors import WorkerError
from warmfront_forecaster.workers import Workers


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(count=1, timeout_seconds=60.0)
    yield made
    made.close()


async def test_a_job_comes_back_and_so_does_what_it_raises(workers: Workers):
    assert await workers.run(math.sqrt, 9.0) == 3.0
    with pytest.raises(ValueError, match=r"domain|nonnegative"):
        await workers.run(math.sqrt, -1.0)
    assert await workers.run(math.sqrt, 16.0) == 4.0


async def test_a_dead_worker_is_an_error_that_says_so_and_the_next_job_gets_a_new_one(workers: Workers):
    with pytest.raises(WorkerError, match="died") as caught:
        await workers.run(os._exit, 9)
    assert caught.value.retryable
    assert await workers.run(math.sqrt, 4.0) == 2.0


async def test_a_worker_that_hangs_is_ended_with_its_process():
    impatient = Workers(count=1, timeout_seconds=2.0)
    started = time.monotonic()
    with pytest.raises(WorkerError, match="longer than"):
        await impatient.run(time.sleep, 600.0)
    assert time.monotonic() - started < 60
    assert impatient._all[0]._pool is None
    impatient.close()


async def test_a_worker_is_out_of_the_consoles_process_group(workers: Workers):
    group = await workers.run(os.getpgid, 0)
    assert group != os.getpgid(0)
