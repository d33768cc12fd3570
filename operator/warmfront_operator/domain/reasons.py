"""The reasons of conditions and events. All of them are documented in docs/reference/conditions.md."""

from enum import StrEnum


class StateReason(StrEnum):
    """Of Ready, Reconciling and Stalled."""

    WARM = "Warm"
    NO_WARM_POD = "NoWarmPod"
    NO_REPLICAS = "NoReplicas"
    POD_FAILING = "PodFailing"
    ROLLOUT_IN_PROGRESS = "RolloutInProgress"
    ROLLOUT_STUCK = "RolloutStuck"
    RETRYING = "Retrying"
    UP_TO_DATE = "UpToDate"
    INVALID_SPEC = "InvalidSpec"
    NAME_TAKEN = "NameTaken"
    CHILD_REFUSED = "ChildRefused"


class ScalingReason(StrEnum):
    """Of ScalingActive, AbleToScale and ScalingLimited."""

    DEMAND_KNOWN = "DemandKnown"
    DEMAND_UNKNOWN = "DemandUnknown"
    PROMETHEUS_UNAVAILABLE = "PrometheusUnavailable"
    PROMETHEUS_NOT_CONFIGURED = "PrometheusNotConfigured"
    ADVISORY = "Advisory"
    PAUSED = "Paused"
    PAUSED_HOLDING = "PausedHolding"
    READY_FOR_NEW_SCALE = "ReadyForNewScale"
    SCALE_REFUSED = "ScaleRefused"
    DESIRED_WITHIN_RANGE = "DesiredWithinRange"
    TOO_MANY_REPLICAS = "TooManyReplicas"
    TOO_FEW_REPLICAS = "TooFewReplicas"
    PACED = "Paced"
    NO_DECISION = "NoDecision"


class ForecastReason(StrEnum):
    """Of ForecastReady and ForecastTrusted, beside the forecaster's own."""

    AVAILABLE = "ForecastAvailable"
    TRUSTED = "Trusted"
    PREDICTIVE_OFF = "PredictiveOff"
    FORECASTER_NOT_CONFIGURED = "ForecasterNotConfigured"
    FORECASTER_UNAVAILABLE = "ForecasterUnavailable"
    NO_ANSWER = "NoAnswer"


class CapacityReason(StrEnum):
    """Of CapacityAvailable."""

    PODS_PLACED = "PodsPlaced"
    UNSCHEDULABLE = "Unschedulable"
    PODS_REFUSED = "PodsRefused"


class EventReason(StrEnum):
    """Events beside those that repeat a condition's reason."""

    CREATED = "Created"
    SCALED_UP = "ScaledUp"
    SCALED_DOWN = "ScaledDown"
    REPLICAS_IGNORED = "ReplicasIgnored"
