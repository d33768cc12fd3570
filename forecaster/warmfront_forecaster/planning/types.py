"""The values that planning takes and gives. One explicit input, one explicit result; live, replay and tests share them."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Mode(StrEnum):
    """Who decides the replicas (`scaling.mode`)."""

    ACTIVE = "Active"
    ADVISORY = "Advisory"
    PAUSED = "Paused"


class PredictiveMode(StrEnum):
    """What the forecast may do (`scaling.predictive.mode`)."""

    OFF = "Off"
    SHADOW = "Shadow"
    ACTIVE = "Active"


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
    """How far a forecast is trusted. `Unavailable`: the forecaster gave no answer."""

    LEARNING = "Learning"
    SHADOW = "Shadow"
    TRUSTED = "Trusted"
    DEGRADED = "Degraded"
    UNAVAILABLE = "Unavailable"


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What one replica does. Rates in tokens per second; the target is the share of it to plan for, in (0, 1]."""

    prefill_tokens_per_second: float
    decode_tokens_per_second: float
    target_utilization: float = 0.75


@dataclass(frozen=True, kw_only=True)
class LeadTimePolicy:
    """How far ahead of need a pod is started. `measured` False: always `seconds`."""

    measured: bool = True
    percentile: int = 90
    margin_seconds: float = 30.0
    seconds: float = 300.0


@dataclass(frozen=True, kw_only=True)
class ScalingPolicy:
    """The user's scaling block, in the units of this package."""

    mode: Mode = Mode.ACTIVE
    predictive: PredictiveMode = PredictiveMode.SHADOW
    min_replicas: int = 1
    max_replicas: int = 1
    max_step_percent: int = 50
    lead_time: LeadTimePolicy = field(default_factory=LeadTimePolicy)
    fallback_replicas: int = 1
    fallback_threshold: int = 3
    paused_replicas: int | None = None  # spec.replicas, obeyed in Paused only


@dataclass(frozen=True, kw_only=True)
class DemandReading:
    """Demand as measured now.

    `arrivals_per_second` counts every admitted request, whatever became of it. `prompt_tokens` and
    `output_tokens` are means per served request (None: no request was served in the window, so unknown).
    `backlog_requests` are requests that wait or run beyond what ready replicas serve within the objective.
    """

    arrivals_per_second: float
    prompt_tokens: float | None
    output_tokens: float | None
    backlog_requests: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ReplicaCounts:
    """Pods of the service now. `wanted` is the Deployment's own `.spec.replicas`."""

    wanted: int
    ready: int
    starting: int = 0  # exist and are on their way to Ready
    unschedulable: int = 0  # Pending because no node has room
    rolling: bool = False  # a template change is under way


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What the forecaster said, in replica-equivalents of demand `d` (1.0 = all of one replica's throughput).

    `upper` is the quantile of the maximum of the 60 s mean of d over (t+L, t+2L+tick);
    `median` the median of the maximum over (t, t+L); `max_demand_seen` the most d in the history window.
    """

    state: ForecastState
    reason: str = ""
    message: str = ""
    upper: float | None = None
    median: float | None = None
    max_demand_seen: float | None = None


@dataclass(frozen=True, kw_only=True)
class PastWant:
    """What an earlier tick wanted; the down-window is taken over these. Kept between ticks by `planning.history`."""

    time: datetime
    replicas: int
    without_forecast: int | None = None  # what it would have been with predictive.mode Off all along; None: not tracked


@dataclass(frozen=True, kw_only=True)
class Observation:
    """All that `decide` may know.

    `demand` None: it could not be read (absent is not zero). `failed_readings` counts ticks in a row without
    one. `cold_start_seconds` are measured times from decision to warm, oldest first. `last_desired` None: never decided.
    """

    policy: ScalingPolicy
    capacity: Capacity
    replicas: ReplicaCounts
    demand: DemandReading | None
    failed_readings: int = 0
    forecast: Forecast | None = None
    cold_start_seconds: tuple[float, ...] = ()
    past_wants: tuple[PastWant, ...] = ()
    last_desired: int | None = None
    last_scale_up: tuple[PastWant, ...] = ()  # desired after each change of the last minutes, for the pace up
    tick_seconds: float = 15.0


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Every number that took part, in replicas unless named otherwise. None: did not take part."""

    demand: float | None = None  # d now, replica-equivalents
    reactive: int | None = None  # n_react
    predictive: int | None = None  # n_pred after its caps, acted on or not
    predictive_uncapped: int | None = None
    minimum: int = 0
    maximum: int = 0
    fallback: int | None = None
    want: int | None = None  # before bounds on pace and scale-down conditions
    without_forecast: int | None = None  # what the same decision would be with predictive.mode Off
    want_without_forecast: int | None = None  # `want` of that decision
    backlog: float | None = None  # what the backlog adds to demand, replica-equivalents
    held: int = 0  # where a hold stays: the replicas in force, or what was last decided
    down_window: int | None = None  # the most that was wanted in the down-window
    consolidated: int | None = None  # `want` if no pod were starting: fewer replicas must carry the backlog too
    payback: int | None = None  # what the median forecast wants within the lead time; only while it is acted on
    pace_up: int | None = None  # most that the pace allows now
    pace_down: int | None = None  # fewest that the pace allows now


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The replicas wanted, and everything that explains them. Status, event, metric and log are rendered from this."""

    time: datetime
    current: int
    desired: int
    binding: Binding
    reason: str  # PascalCase, from the set in planning/reasons.py
    message: str  # one sentence for a human
    lead_time_seconds: float
    candidates: Candidates
    limited: bool = False  # a bound kept it from what demand asked (condition ScalingLimited)
    act: bool = True  # False: advisory or paused without a wish; nothing is to be written
    forecast_reason: str = ""  # whether the forecast took part, PascalCase, from the set in planning/reasons.py
    forecast_message: str = ""  # the same in one sentence
