"""What the process is told by its environment, and the file that the operator wrote for its service."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from warmfront_api.gateway_config import GATEWAY_CONFIG_DIRECTORY, GATEWAY_CONFIG_FILE, GatewayConfig
from warmfront_api.names import PORT_HTTP, PORT_METRICS
from warmfront_runtime.errors import ConfigError

ENV_PREFIX = "WARMFRONT_GATEWAY_"

Seconds = Annotated[float, Field(gt=0, le=86_400)]


class GatewaySettings(BaseSettings):
    """Settings of the gateway process, from `WARMFRONT_GATEWAY_*`; each default with its reason."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, extra="ignore", frozen=True)

    config: Path = Path(GATEWAY_CONFIG_DIRECTORY) / GATEWAY_CONFIG_FILE
    """The operator's file."""
    host: str = "0.0.0.0"  # noqa: S104
    """Clients and kubelet come from outside the pod."""
    # Not `port`: for a Service named `warmfront-gateway`, Kubernetes itself sets WARMFRONT_GATEWAY_PORT to a tcp:// URL.
    http_port: Annotated[int, Field(ge=0, le=65_535)] = PORT_HTTP
    metrics_port: Annotated[int, Field(ge=0, le=65_535)] = PORT_METRICS
    idle_timeout_seconds: Seconds = 75
    """Longest silence between requests, and longest time for a request's headers. Above the 60 s of common load balancers:
    the side that closes first should be the client's."""
    body_timeout_seconds: Seconds = 30
    """Longest time for a body to arrive; it holds one of the pod's slots meanwhile."""
    write_timeout_seconds: Seconds = 60
    """Longest time that a client may take no byte of its answer, while the engine holds KV cache for it."""
    accept_after_sigterm_seconds: Annotated[float, Field(ge=0, le=60)] = 5
    """Endpoints take this long to reach every kube-proxy; until then new requests still come and are served."""
    engine_hang_seconds: Seconds = 60
    """A health request unanswered for so long means that the engine hangs. Longer than tokenizing the longest prompts takes."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "text"] = "json"
    """One JSON object a line, which log collectors read; `text` for people."""


def load_settings() -> GatewaySettings:
    """Settings from the environment.

    Raises:
        ConfigError: a variable has a bad value; the message names it.
    """
    try:
        return GatewaySettings()
    except ValidationError as error:
        raise ConfigError(f"settings: {_reasons(error, prefix=ENV_PREFIX)}") from error


def load_config(path: Path) -> GatewayConfig:
    """The operator's file.

    Raises:
        ConfigError: the file cannot be read, or is not a valid configuration; the message names file and field.
    """
    try:
        return GatewayConfig.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}: mount the service's ConfigMap there, or set {ENV_PREFIX}CONFIG to the file"
        ) from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {_reasons(error)}") from error


def _reasons(error: ValidationError, prefix: str = "") -> str:
    def one(location: tuple[int | str, ...], message: str) -> str:
        name = ".".join(map(str, location))
        return f"{prefix}{name.upper() if prefix else name}: {message}"

    return "; ".join(one(item["loc"], item["msg"]) for item in error.errors())
