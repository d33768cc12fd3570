"""The kind InferenceService."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from warmfront_api.base import ApiModel
from warmfront_api.scaling import Scaling
from warmfront_api.status import InferenceServiceStatus
from warmfront_api.workload import Drain, Engine, Gateway, Model, PodTemplate, Warmup


class InferenceServiceSpec(ApiModel):
    """A model served by vLLM pods that are scaled ahead of their load."""

    replicas: Annotated[
        int | None,
        Field(
            description="Obeyed only with `scaling.mode: Paused` (a human's choice, or another autoscaler's).",
            ge=0,
            le=1000,
        ),
    ] = None
    model: Annotated[Model, Field(description="The model.")]
    engine: Annotated[Engine, Field(description="The engine that runs it.")]
    gateway: Annotated[Gateway, Field(description="The gateway in each pod.")] = Gateway()
    scaling: Annotated[Scaling, Field(description="How many replicas.")]
    warmup: Annotated[Warmup, Field(description="When a pod counts as warm.")] = Warmup()
    drain: Annotated[Drain, Field(description="How a pod stops.")] = Drain()
    pod_template: Annotated[PodTemplate, Field(description="What is added to each pod.")] = PodTemplate()


class InferenceService(ApiModel):
    """An InferenceService resource, as read from the API server (metadata is passed through)."""

    model_config = ConfigDict(extra="ignore")

    metadata: dict[str, Any]
    spec: InferenceServiceSpec
    status: InferenceServiceStatus | None = None

    @property
    def name(self) -> str:
        """Name of the resource."""
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        """Namespace of the resource."""
        return str(self.metadata["namespace"])

    @property
    def uid(self) -> str:
        """UID of the resource."""
        return str(self.metadata["uid"])

    @property
    def generation(self) -> int:
        """Generation of the spec."""
        return int(self.metadata.get("generation", 0))
