"""How many replicas: bounds, capacity of one, forecast, fallback."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from warmfront_api.base import ApiModel, rules


class ScalingMode(StrEnum):
    """Who decides the replicas."""

    ACTIVE = "Active"
    ADVISORY = "Advisory"
    PAUSED = "Paused"


class PredictiveMode(StrEnum):
    """What the forecast may do."""

    OFF = "Off"
    SHADOW = "Shadow"
    ACTIVE = "Active"


class LeadTimeSource(StrEnum):
    """Where the time from decision to warm comes from."""

    MEASURED = "Measured"
    FIXED = "Fixed"


class Capacity(ApiModel):
    """What one replica does within its latency objective."""

    prefill_tokens_per_second: Annotated[
        int, Field(description="Prompt tokens that one replica reads per second.", ge=1, le=100_000_000)
    ]
    decode_tokens_per_second: Annotated[
        int,
        Field(description="Output tokens that one replica generates per second, over all requests.", ge=1, le=100_000_000),
    ]
    target_utilization_percent: Annotated[
        int, Field(description="Share of a replica's throughput to plan for.", ge=5, le=100)
    ] = 75


class LeadTime(ApiModel):
    """How far ahead of need a pod must be started."""

    source: Annotated[
        LeadTimeSource,
        Field(description="Measured: from this service's own pods, `seconds` until there is a sample. Fixed: always `seconds`."),
    ] = LeadTimeSource.MEASURED
    percentile: Annotated[int, Field(description="Percentile of the measured start-ups.", ge=50, le=99)] = 90
    margin_seconds: Annotated[int, Field(description="Added to the measured percentile.", ge=0, le=3600)] = 30
    seconds: Annotated[
        int, Field(description="The fixed value, and the start value while nothing is measured.", ge=1, le=7200)
    ] = 300


class Predictive(ApiModel):
    """The forecast."""

    mode: Annotated[
        PredictiveMode,
        Field(description="Off: none. Shadow: computed and shown, never acted on. Active: acted on while trusted."),
    ] = PredictiveMode.SHADOW
    history_days: Annotated[int, Field(description="Days of history to learn from.", ge=2, le=90)] = 28
    quantile_percent: Annotated[int, Field(description="Quantile of the forecast demand to provision for.", ge=50, le=99)] = 95
    lead_time: Annotated[LeadTime, Field(description="Time from decision to warm.")] = LeadTime()
    max_step_percent: Annotated[
        int,
        Field(description="Most that the forecast may add over the reactive answer (at least 4 replicas).", ge=1, le=1000),
    ] = 50
    timezone: Annotated[
        str,
        Field(
            description="IANA time zone of the service's users, for example Europe/Berlin: days and weeks are theirs.",
            min_length=1,
            max_length=64,
            json_schema_extra=rules(
                (
                    "self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$')",
                    "scaling.predictive.timezone must be an IANA name without blanks, for example Europe/Berlin or UTC",
                )
            ),
        ),
    ] = "UTC"


class Fallback(ApiModel):
    """What happens when demand cannot be read."""

    failure_threshold: Annotated[int, Field(description="Ticks without a reading until the floor applies.", ge=1, le=100)] = 3
    replicas: Annotated[
        int, Field(description="Floor while demand is unknown. An outage never removes a replica.", ge=0, le=1000)
    ] = 1


class Scaling(ApiModel):
    """Replicas: bounds and policy."""

    model_config = {
        "json_schema_extra": rules(
            (
                "self.minReplicas <= self.maxReplicas",
                "scaling.minReplicas must not be above scaling.maxReplicas: lower one or raise the other",
            ),
            (
                "self.fallback.replicas <= self.maxReplicas",
                "scaling.fallback.replicas must not be above scaling.maxReplicas: lower one or raise the other",
            ),
        )
    }

    mode: Annotated[
        ScalingMode,
        Field(description="Active: the operator scales. Advisory: it decides, others may scale. Paused: `spec.replicas` rules."),
    ] = ScalingMode.ACTIVE
    min_replicas: Annotated[int, Field(description="Never fewer.", ge=1, le=1000)] = 1
    max_replicas: Annotated[int, Field(description="Never more.", ge=1, le=1000)]
    capacity: Annotated[Capacity, Field(description="Throughput of one replica.")]
    predictive: Annotated[Predictive, Field(description="The forecast.")] = Predictive()
    fallback: Annotated[Fallback, Field(description="When demand cannot be read.")] = Fallback()
