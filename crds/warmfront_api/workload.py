"""What runs: the model, its engine, the gateway beside it, the pod around both."""

from typing import Annotated

from pydantic import Field

from warmfront_api.base import ApiModel, rules
from warmfront_api.engine import (
    OWNED_ENGINE_FLAGS,
    OWNED_ENGINE_VARIABLES,
    Engine,
    EnvSource,
    EnvVar,
    Resources,
    SecretKey,
    VolumeMount,
)
from warmfront_api.pod import OWNED_VOLUME_PREFIX, LocalObject, PodMetadata, PodSpec, PodTemplate, Toleration

__all__ = [
    "OWNED_ENGINE_FLAGS",
    "OWNED_ENGINE_VARIABLES",
    "OWNED_VOLUME_PREFIX",
    "Drain",
    "Engine",
    "EnvSource",
    "EnvVar",
    "Gateway",
    "GatewayLimits",
    "LocalObject",
    "Model",
    "PodMetadata",
    "PodSpec",
    "PodTemplate",
    "Resources",
    "SecretKey",
    "Toleration",
    "VolumeMount",
    "Warmup",
]


class Model(ApiModel):
    """Which model is served, and where its weights come from."""

    model_config = {
        "json_schema_extra": rules(
            (
                "!has(self.revision) || self.source.startsWith('hf://')",
                "model.revision is for hub models only: remove it, or use a model.source that starts with hf://",
            )
        )
    }

    name: Annotated[
        str,
        Field(
            description="The model name that clients send in the `model` field of a request. Immutable.",
            min_length=1,
            max_length=128,
            json_schema_extra=rules(
                (
                    "self.matches('^[A-Za-z0-9]([A-Za-z0-9._/:-]*[A-Za-z0-9])?$')",
                    (
                        "model.name must begin and end with a letter or digit and have only letters, digits and . _ / : - "
                        "between: write it as clients send it, for example llama-3.1-8b-instruct"
                    ),
                ),
                ("self == oldSelf", "model.name is immutable: create a second InferenceService for another model"),
            ),
        ),
    ]
    source: Annotated[
        str,
        Field(
            description="Where the weights are: `hf://ORG/NAME` (a hub) or `path:///DIR` (a folder inside the engine container).",
            min_length=1,
            max_length=512,
            json_schema_extra=rules(
                (
                    "self.matches('^(hf://[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9._-]+|path:///[^ ]+)$')",
                    "model.source must be hf://ORG/NAME or path:///DIR, for example hf://meta-llama/Llama-3.1-8B-Instruct",
                )
            ),
        ),
    ]
    revision: Annotated[
        str | None,
        Field(
            description="Branch, tag or commit of a hub model; unset: the hub's default.",
            min_length=1,
            max_length=128,
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$",
        ),
    ] = None


class GatewayLimits(ApiModel):
    """What one pod's gateway lets in."""

    max_request_bytes: Annotated[
        int, Field(description="Longest request body; a longer one is answered 413.", ge=1024, le=1_073_741_824)
    ] = 1_048_576
    max_concurrent_requests: Annotated[
        int,
        Field(
            description="Most requests in flight in one pod; one more is answered 503 with Retry-After.",
            ge=1,
            le=65_536,
        ),
    ] = 512
    request_timeout_seconds: Annotated[
        int,
        Field(
            description="Longest time for one request; then it is answered 504 (or its stream ends with an error event).",
            ge=1,
            le=86_400,
        ),
    ] = 600


class Gateway(ApiModel):
    """The OpenAI-compatible gateway in each pod."""

    limits: Annotated[GatewayLimits, Field(description="Bounds per pod.")] = GatewayLimits()


class Warmup(ApiModel):
    """When a pod counts as warm."""

    prompts: Annotated[int, Field(description="Generations that must complete before the pod is Ready.", ge=1, le=64)] = 3
    timeout_seconds: Annotated[
        int,
        Field(
            description="After so long a healthy engine serves though not warm (a metric says so); an unhealthy one never does.",
            ge=5,
            le=86_400,
        ),
    ] = 600


class Drain(ApiModel):
    """How a pod stops."""

    timeout_seconds: Annotated[int, Field(description="How long running requests may go on after SIGTERM.", ge=1, le=86_400)] = (
        120
    )
