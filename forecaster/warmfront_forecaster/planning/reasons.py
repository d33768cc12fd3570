"""The enumerated reasons. Status, events, metrics and docs/reference/reasons.md use these words."""

from enum import StrEnum


class Reason(StrEnum):
    """Why the replicas are what they are."""

    DEMAND_MEASURED = "DemandMeasured"
    BACKLOG_WAITING = "BacklogWaiting"
    FORECAST_PEAK = "ForecastPeak"
    MINIMUM_REPLICAS = "MinimumReplicas"
    MAXIMUM_REPLICAS = "MaximumReplicas"
    SCALE_UP_PACE = "ScaleUpPace"
    SCALE_DOWN_PACE = "ScaleDownPace"
    DOWN_WINDOW = "DownWindow"
    HISTORY_TOO_SHORT = "HistoryTooShort"
    LOAD_DOES_NOT_FIT = "LoadDoesNotFit"
    FORECAST_PAYBACK = "ForecastPayback"
    ROLLOUT_UNDER_WAY = "RolloutUnderWay"
    NO_READY_REPLICA = "NoReadyReplica"
    PENDING_CANCELLED = "PendingCancelled"
    DEMAND_UNKNOWN = "DemandUnknown"
    DEMAND_INVALID = "DemandInvalid"
    TOKENS_UNKNOWN = "TokensUnknown"
    CAPACITY_INVALID = "CapacityInvalid"
    FORECAST_MEDIAN = "ForecastMedian"
    FALLBACK_FLOOR = "FallbackFloor"
    PAUSED_REPLICAS = "PausedReplicas"
    PAUSED_HOLD = "PausedHold"


class ForecastUse(StrEnum):
    """Whether the forecast took part in the decision, and why not."""

    ACTIVE = "ForecastActive"
    SHADOW = "ForecastShadow"
    OFF = "ForecastOff"
    UNAVAILABLE = "ForecastUnavailable"
    NOT_TRUSTED = "ForecastNotTrusted"
    INVALID = "ForecastInvalid"
    INCOMPLETE = "ForecastIncomplete"
