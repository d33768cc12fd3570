"""The answer to demand as forecast, and whether it may be acted on."""

import math
from dataclasses import dataclass

from warmfront_forecaster.planning.amounts import is_amount
from warmfront_forecaster.planning.reasons import ForecastUse
from warmfront_forecaster.planning.sizing import need
from warmfront_forecaster.planning.types import Capacity, Forecast, ForecastState, PredictiveMode

SMALLEST_STEP = 4  # replicas that the forecast may always add, or a percent of few would be nothing
HISTORY_FACTOR = 1.5  # times the most demand ever seen: beyond it a forecast is an error, not a peak


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """The numbers of a forecast that passed every check, in replica-equivalents."""

    upper: float
    median: float
    max_demand_seen: float


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the decision may do with the forecast. `outlook` None: nothing in it can be shown or used."""

    use: ForecastUse
    outlook: Outlook | None = None

    @property
    def acting(self) -> Outlook | None:
        """The numbers to act on; None in every use but Active."""
        return self.outlook if self.use is ForecastUse.ACTIVE else None


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Replicas that the upper forecast needs, before and after the caps."""

    uncapped: int
    capped: int


def judge(forecast: Forecast | None, mode: PredictiveMode) -> Judgement:
    """Check every number of a forecast. NaN, infinite or negative disqualifies it as a whole; it raises nothing."""
    if mode is PredictiveMode.OFF:
        return Judgement(use=ForecastUse.OFF)
    if forecast is None or forecast.state is ForecastState.UNAVAILABLE:
        return Judgement(use=ForecastUse.UNAVAILABLE)
    if _has_bad_number(forecast):
        return Judgement(use=ForecastUse.INVALID)
    outlook = _outlook(forecast)
    if forecast.state is not ForecastState.TRUSTED:
        return Judgement(use=ForecastUse.NOT_TRUSTED, outlook=outlook)
    if outlook is None:
        return Judgement(use=ForecastUse.INCOMPLETE)
    use = ForecastUse.ACTIVE if mode is PredictiveMode.ACTIVE else ForecastUse.SHADOW
    return Judgement(use=use, outlook=outlook)


def predict(outlook: Outlook, n_react: int, max_step_percent: int, capacity: Capacity) -> Prediction:
    """`n_pred`: what the upper forecast needs, at most a step above `n_react` and what 1.5 times history needs."""
    uncapped = need(outlook.upper, capacity)
    return Prediction(uncapped=uncapped, capped=capped(uncapped, outlook, n_react, max_step_percent, capacity))


def capped(replicas: int, outlook: Outlook, base: int, max_step_percent: int, capacity: Capacity) -> int:
    """`replicas`, at most `base + max(4, maxStepPercent of base)` (rounded up) and `need(1.5 * most demand seen)`."""
    step = max(SMALLEST_STEP, math.ceil(base * max_step_percent / 100))
    return min(replicas, base + step, history_cap(outlook, capacity))


def history_cap(outlook: Outlook, capacity: Capacity) -> int:
    """The most replicas that any number of this forecast may ask for."""
    return need(HISTORY_FACTOR * outlook.max_demand_seen, capacity)


def payback(outlook: Outlook, capacity: Capacity) -> int:
    """Replicas that the median forecast wants back within the time that it takes to load one."""
    return min(need(outlook.median, capacity), history_cap(outlook, capacity))


def _has_bad_number(forecast: Forecast) -> bool:
    numbers = (forecast.upper, forecast.median, forecast.max_demand_seen)
    return any(number is not None and not is_amount(number) for number in numbers)


def _outlook(forecast: Forecast) -> Outlook | None:
    if forecast.upper is None or forecast.median is None or forecast.max_demand_seen is None:
        return None
    return Outlook(upper=forecast.upper, median=forecast.median, max_demand_seen=forecast.max_demand_seen)
