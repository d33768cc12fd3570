"""What the operator reports. Written only when something changed; rounded; never noise."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from warmfront_api.base import ApiModel, keyed_list
from warmfront_api.text import LARGEST_INTEGER


class ConditionType(StrEnum):
    """Condition types of an InferenceService."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    SCALING_ACTIVE = "ScalingActive"
    ABLE_TO_SCALE = "AbleToScale"
    SCALING_LIMITED = "ScalingLimited"
    FORECAST_READY = "ForecastReady"
    FORECAST_TRUSTED = "ForecastTrusted"
    CAPACITY_AVAILABLE = "CapacityAvailable"


class Binding(StrEnum):
    """Which input decided the replicas."""

    REACTIVE = "Reactive"
    PREDICTIVE = "Predictive"
    MINIMUM = "Minimum"
    MAXIMUM = "Maximum"
    FALLBACK = "Fallback"
    HOLD = "Hold"
    PAUSED = "Paused"


class ForecastState(StrEnum):
    """How far a forecast is trusted."""

    LEARNING = "Learning"
    SHADOW = "Shadow"
    TRUSTED = "Trusted"
    DEGRADED = "Degraded"
    UNAVAILABLE = "Unavailable"


Timestamp = Annotated[str, Field(max_length=32, json_schema_extra={"format": "date-time"})]


class Condition(ApiModel):
    """A condition, as metav1.Condition."""

    type: Annotated[str, Field(description="Type of the condition.", min_length=1, max_length=316)]
    status: Annotated[Literal["True", "False", "Unknown"], Field(description="Its state.")]
    reason: Annotated[str, Field(description="One word, from a documented set.", min_length=1, max_length=256)]
    message: Annotated[str, Field(description="For humans, with the mend where there is one.", max_length=1024)] = ""
    observed_generation: Annotated[int, Field(description="Generation of the spec it speaks of.", ge=0, le=LARGEST_INTEGER)] = 0
    last_transition_time: Annotated[Timestamp, Field(description="When `status` last changed.")]


class Peak(ApiModel):
    """A window in which the forecast needs more replicas than there are."""

    start: Annotated[Timestamp, Field(description="Start of the window.")]
    end: Annotated[Timestamp, Field(description="End of the window.")]
    replicas: Annotated[int, Field(description="Replicas that it needs.", ge=0, le=100_000)]


class ForecastStatus(ApiModel):
    """The forecast behind the last decision."""

    state: Annotated[ForecastState, Field(description="How far it is trusted.")]
    reason: Annotated[str, Field(description="Why, one word.", max_length=256)] = ""
    message: Annotated[str, Field(description="Why, in a sentence, and when it is expected to change.", max_length=1024)] = ""
    model: Annotated[str | None, Field(description="Forecast model in use.", max_length=64)] = None
    quantile_percent: Annotated[int | None, Field(description="Quantile in use.", ge=1, le=99)] = None
    horizon_seconds: Annotated[int | None, Field(description="How far ahead the decision looks.", ge=0, le=1_000_000)] = None
    upper: Annotated[
        str | None,
        Field(
            description="Upper forecast over that window, replica-equivalents (a decimal number).",
            max_length=32,
            pattern=r"^[0-9]+(\.[0-9]+)?$",
        ),
    ] = None
    coverage_percent: Annotated[
        int | None, Field(description="How often the quantile held, in its own backtest.", ge=0, le=100)
    ] = None
    skill_percent: Annotated[
        int | None,
        Field(description="Pinball loss saved against the last value, in its own backtest.", ge=-1000, le=100),
    ] = None
    next_peak: Annotated[Peak | None, Field(description="Next window that needs more replicas than now.")] = None
    ready_at: Annotated[Timestamp | None, Field(description="When enough history is expected.")] = None


class ColdStartStatus(ApiModel):
    """Time from decision to warm, measured from this service's own pods."""

    p50_seconds: Annotated[int, Field(description="Median.", ge=0, le=1_000_000)]
    p90_seconds: Annotated[int, Field(description="90th percentile.", ge=0, le=1_000_000)]
    samples: Annotated[int, Field(description="Pods measured.", ge=0, le=1_000_000)]


class DecisionStatus(ApiModel):
    """One decision; in the list of decisions, one that changed the wanted replicas."""

    time: Annotated[Timestamp, Field(description="When.")]
    from_: Annotated[int, Field(alias="from", description="Replicas before.", ge=0, le=100_000)]
    to: Annotated[int, Field(description="Replicas wanted.", ge=0, le=100_000)]
    binding: Annotated[Binding, Field(description="Which input decided.")]
    reason: Annotated[str, Field(description="Why, one word.", max_length=256)]
    message: Annotated[str, Field(description="Why, in a sentence.", max_length=1024)] = ""


class InferenceServiceStatus(ApiModel):
    """Observed state of an InferenceService."""

    observed_generation: Annotated[
        int, Field(description="Generation of the spec that was acted on.", ge=-1, le=LARGEST_INTEGER)
    ] = -1
    replicas: Annotated[int | None, Field(description="Pods that exist, as /scale reports.", ge=0, le=100_000)] = None
    ready_replicas: Annotated[int | None, Field(description="Pods that are warm and serving.", ge=0, le=100_000)] = None
    desired_replicas: Annotated[int | None, Field(description="Replicas that the operator wants.", ge=0, le=100_000)] = None
    selector: Annotated[str | None, Field(description="Label selector of the pods, as /scale reports.", max_length=1024)] = None
    forecast: Annotated[ForecastStatus | None, Field(description="The forecast behind the last decision.")] = None
    cold_start: Annotated[ColdStartStatus | None, Field(description="Measured time from decision to warm.")] = None
    last_decision: Annotated[
        DecisionStatus | None,
        Field(description="What decides now: the last change of the wanted replicas, or what has bound since."),
    ] = None
    decisions: Annotated[list[DecisionStatus], Field(description="The last ten, newest first.", max_length=10)] = []
    conditions: Annotated[
        list[Condition], Field(description="Conditions.", max_length=32, json_schema_extra=keyed_list("type"))
    ] = []
