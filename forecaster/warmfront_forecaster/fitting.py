"""The work that a worker process does: evaluate the models on one service's history."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from warmfront_forecaster.domain.baselines import LastValue, SameTimeEarlier, YesterdayLevelled
from warmfront_forecaster.domain.evaluation import Evaluation, evaluate
from warmfront_forecaster.domain.models import ForecastModel, Refitted
from warmfront_forecaster.domain.series import Series
from warmfront_forecaster.domain.window import Window


@dataclass(frozen=True, kw_only=True, eq=False)
class FitJob:
    """All that an evaluation needs; it crosses to another process."""

    series: Series
    window: Window
    quantile: float
    timezone: str
    earlier: Mapping[str, Refitted] = field(default_factory=dict)


def run(job: FitJob) -> Evaluation:
    """Evaluate all models. Runs in a worker."""
    return evaluate(job.series, all_models(ZoneInfo(job.timezone)), job.window, job.quantile, job.earlier)


def all_models(zone: ZoneInfo) -> Sequence[ForecastModel]:
    """Every model that takes part."""
    # Prophet complains, when imported, about a plotting library that nobody here plots with.
    logging.getLogger("prophet.plot").disabled = True
    from warmfront_forecaster.adapters.prophet_model import ProphetModel  # noqa: PLC0415 - 150 MB that only workers need

    return (
        LastValue(),
        SameTimeEarlier(name="SameTimeYesterday", days=1, zone=zone),
        SameTimeEarlier(name="SameTimeLastWeek", days=7, zone=zone),
        YesterdayLevelled(zone=zone),
        ProphetModel(zone=zone),
    )
