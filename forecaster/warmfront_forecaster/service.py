"""The forecaster's heart: who is enrolled, what is due, and answers from memory. All time comes from the clock given."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol

from warmfront_forecaster.adapters.prometheus_source import Holdings, ServiceKey
from warmfront_forecaster.contract import ForecastsRequest, ForecastsResponse, ServiceForecast, ServiceQuery
from warmfront_forecaster.domain.demand import Traffic
from warmfront_forecaster.domain.evaluation import Evaluation
from warmfront_forecaster.domain.series import STEP_SECONDS, floor_step
from warmfront_forecaster.domain.trust import LEAST_HISTORY_SECONDS, MOST_SPACING_SECONDS
from warmfront_forecaster.enrolment import Enrolled
from warmfront_forecaster.errors import ForecasterError
from warmfront_forecaster.fitting import FitJob
from warmfront_forecaster.metrics import Metrics
from warmfront_forecaster.settings import Settings

LOG = logging.getLogger(__name__)

TURN_SECONDS = 1.0
OVERLAP_SECONDS = 300  # read again each time: samples may reach a remote store late
REREAD_SECONDS = 6 * 3_600.0  # all of it: somebody may have restored or back-filled the past
REREAD_LEARNING_SECONDS = 300.0  # the same while there is too little, and it would be missed most
STUCK_SECONDS = 60.0  # without a turn


class Source(Protocol):
    """Where history comes from; synchronous, called in threads."""

    def holdings(self, service: ServiceKey, start: int) -> Holdings:
        """About the data itself."""
        ...

    def spacing_seconds(self, service: ServiceKey) -> float | None:
        """Between scrapes."""
        ...

    def traffic(self, service: ServiceKey, start: int, end: int, spacing_seconds: float | None = None) -> Traffic:
        """The data."""
        ...


@dataclass(kw_only=True)
class _Agenda:
    """When something is to be done for one service (Unix seconds), and whether it is being done."""

    read_due_at: float = 0.0
    read_whole_at: float | None = None
    read_days: int = 0
    read_to: int | None = None
    fit_due_at: float = 0.0
    reading: bool = False
    fitting: bool = False


class Forecaster:
    """Enrols who is asked for, keeps their history and forecasts fresh, and answers from memory."""

    def __init__(
        self,
        *,
        source: Source,
        fit: Callable[[FitJob], Awaitable[Evaluation]],
        settings: Settings,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._source = source
        self._fit = fit
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self._services: dict[ServiceKey, tuple[Enrolled, _Agenda]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(settings.prometheus_concurrency)
        self._wake = asyncio.Event()
        self._turned_at = clock()

    # ------------------------------------------------------------------ questions

    def forecasts(self, request: ForecastsRequest) -> ForecastsResponse:
        """Answer for each service asked for, in order. New ones are enrolled, and learn."""
        now = request.now.timestamp()
        return ForecastsResponse(services=[self._answer(query, now) for query in request.services])

    def _answer(self, query: ServiceQuery, now: float) -> ServiceForecast:
        key = ServiceKey(namespace=query.namespace, name=query.name)
        if key not in self._services:
            self._services[key] = (Enrolled(query=query, asked_at=self._clock()), _Agenda())
            self._wake.set()
        enrolled, _ = self._services[key]
        enrolled.asked(query, self._clock())
        return enrolled.answer(now)

    @property
    def alive(self) -> bool:
        """Whether the loop still turns."""
        return self._clock() - self._turned_at < STUCK_SECONDS

    def show_metrics(self) -> None:
        """Bring the gauges up to date."""
        now = self._clock()
        evidence = [(one.verdict(now).state, one.evidence(now).as_of) for one, _ in self._services.values()]
        self._metrics.show([state for state, _ in evidence], [now - as_of for _, as_of in evidence if as_of is not None])

    # ------------------------------------------------------------------ work

    async def run(self) -> None:
        """Turn for ever."""
        while True:
            self.turn()
            self._wake.clear()
            try:
                async with asyncio.timeout(TURN_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def turn(self) -> None:
        """Forget who is no longer asked for, and start what is due."""
        now = self._turned_at = self._clock()
        for key, (enrolled, agenda) in list(self._services.items()):
            if now - enrolled.asked_at > self._settings.forget_seconds:
                del self._services[key]
                continue
            if not agenda.reading and now >= agenda.read_due_at:
                agenda.reading = True
                self._start(self._read(enrolled, agenda))
            if not agenda.fitting and (now >= agenda.fit_due_at or enrolled.reevaluate):
                self._start_fit(enrolled, agenda)

    async def settle(self) -> None:
        """Wait until what was started is done."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    def close(self) -> None:
        """Stop what is under way."""
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, enrolled: Enrolled, agenda: _Agenda) -> None:
        """Bring a history up to date; what goes wrong is said in the answers, and tried again a quarter of a step later."""
        try:
            async with self._slots:
                await asyncio.to_thread(self._read_now, enrolled, agenda)
            self._metrics.refreshes.inc()
            step = floor_step(self._clock() - self._settings.settle_seconds)
            agenda.read_due_at = step + self._settings.refresh_seconds + self._settings.settle_seconds
        except Exception as error:  # noqa: BLE001 - one service's bug is not another's; logged with traceback
            self._metrics.refresh_failures.inc()
            agenda.read_due_at = self._clock() + STEP_SECONDS / 4
            if enrolled.fetch_error != str(error):  # an outage is told once, not with every try of every service
                _log(error, "history of %s/%s: %s", enrolled, error)
            enrolled.fetch_error = str(error)
        finally:
            agenda.reading = False

    def _read_now(self, enrolled: Enrolled, agenda: _Agenda) -> None:
        """All of the history, or what came since; in a thread."""
        now = self._clock()
        end = floor_step(now - self._settings.settle_seconds)
        start, holdings = enrolled.history_start(end), enrolled.holdings
        if whole := self._whole(enrolled, agenda, now):
            holdings = self._source.holdings(enrolled.key, start)
        else:
            start = max(start, (agenda.read_to or start) - OVERLAP_SECONDS)
            holdings = self._with_spacing(holdings, enrolled.key)
        enrolled.read(self._source.traffic(enrolled.key, start, end, holdings.spacing_seconds), holdings)
        agenda.read_to = end
        if whole:
            agenda.read_whole_at, agenda.read_days = now, enrolled.query.history_days

    @staticmethod
    def _whole(enrolled: Enrolled, agenda: _Agenda, now: float) -> bool:
        if agenda.read_whole_at is None or agenda.read_days != enrolled.query.history_days:
            return True
        learning = enrolled.history is None or enrolled.history.measured_seconds < LEAST_HISTORY_SECONDS
        return now - agenda.read_whole_at >= (REREAD_LEARNING_SECONDS if learning else REREAD_SECONDS)

    def _with_spacing(self, holdings: Holdings, key: ServiceKey) -> Holdings:
        """Ask again where it is unknown or too large; somebody may be mending it."""
        spacing = holdings.spacing_seconds
        if spacing is not None and spacing <= MOST_SPACING_SECONDS:
            return holdings
        return Holdings(**{**vars(holdings), "spacing_seconds": self._source.spacing_seconds(key)})

    def _start_fit(self, enrolled: Enrolled, agenda: _Agenda) -> None:
        job = enrolled.fit_job()
        if job is not None:
            agenda.fitting = True
            self._start(self._evaluate(enrolled, agenda, job))

    async def _evaluate(self, enrolled: Enrolled, agenda: _Agenda, job: FitJob) -> None:
        """Evaluate in a worker. A failure keeps the previous forecast once; then there is none, and it is tried again."""
        try:
            with self._metrics.fit_seconds.time():
                evaluation = await self._fit(job)
            await asyncio.to_thread(enrolled.fit_came, evaluation)
            self._metrics.fits.inc()
            agenda.fit_due_at = self._clock() + self._settings.evaluate_seconds
        except Exception as error:  # noqa: BLE001 - as above
            self._metrics.fit_failures.inc()
            enrolled.fit_failed(str(error))
            agenda.fit_due_at = self._clock() + self._settings.retry_seconds
            _log(error, "evaluation of %s/%s: %s", enrolled, error)
        finally:
            agenda.fitting = False


def _log(error: Exception, words: str, enrolled: Enrolled, *more: object) -> None:
    """Ours are foreseen and explain themselves; anything else is a bug and brings its traceback."""
    foreseen = isinstance(error, ForecasterError)
    LOG.log(
        logging.WARNING if foreseen else logging.ERROR,
        words,
        enrolled.key.namespace,
        enrolled.key.name,
        *more,
        exc_info=None if foreseen else error,
    )
