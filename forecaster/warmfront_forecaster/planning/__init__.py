"""Pure planning: demand, sizing, decide(observation, now) -> Decision. The operator imports this."""

from warmfront_forecaster.planning.decide import decide
from warmfront_forecaster.planning.demand import demand
from warmfront_forecaster.planning.history import remember, remember_change
from warmfront_forecaster.planning.leadtime import lead_time_seconds
from warmfront_forecaster.planning.reasons import ForecastUse, Reason
from warmfront_forecaster.planning.sizing import need
from warmfront_forecaster.planning.types import (
    Binding,
    Candidates,
    Capacity,
    Decision,
    DemandReading,
    Forecast,
    ForecastState,
    LeadTimePolicy,
    Mode,
    Observation,
    PastWant,
    PredictiveMode,
    ReplicaCounts,
    ScalingPolicy,
)

__all__ = [
    "Binding",
    "Candidates",
    "Capacity",
    "Decision",
    "DemandReading",
    "Forecast",
    "ForecastState",
    "ForecastUse",
    "LeadTimePolicy",
    "Mode",
    "Observation",
    "PastWant",
    "PredictiveMode",
    "Reason",
    "ReplicaCounts",
    "ScalingPolicy",
    "decide",
    "demand",
    "lead_time_seconds",
    "need",
    "remember",
    "remember_change",
]
