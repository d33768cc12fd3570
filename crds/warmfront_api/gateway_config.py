"""The file that the operator writes for the gateway (ConfigMap -> /etc/warmfront/gateway.json) and the gateway reads."""

from typing import Annotated, Final

from pydantic import Field

from warmfront_api.base import ApiModel
from warmfront_api.names import PORT_ENGINE
from warmfront_api.workload import Drain, GatewayLimits, Warmup

GATEWAY_CONFIG_DIRECTORY: Final = "/etc/warmfront"
GATEWAY_CONFIG_FILE: Final = "gateway.json"


class GatewayConfig(ApiModel):
    """What one pod's gateway needs to know of its service."""

    service: Annotated[str, Field(description="Name of the InferenceService.")]
    namespace: Annotated[str, Field(description="Its namespace.")]
    model_name: Annotated[str, Field(description="Model name that clients send.")]
    engine_url: Annotated[str, Field(description="Base URL of the engine.")] = f"http://127.0.0.1:{PORT_ENGINE}"
    limits: GatewayLimits = GatewayLimits()
    warmup: Warmup = Warmup()
    drain: Drain = Drain()
