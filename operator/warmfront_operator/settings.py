"""Settings of the operator, from the environment (`WARMFRONT_OPERATOR_...`). Each default has its reason."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

ENV_PREFIX = "WARMFRONT_OPERATOR_"


class Settings(BaseSettings):
    """All of them. `""` means: not set."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, frozen=True, extra="forbid")

    gateway_image: Annotated[str, Field(min_length=1)]
    """Image of the in-pod gateway. No default: it must match this operator's release, and the chart knows both."""

    gateway_image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """A release's tag never changes its content."""

    namespaces: Annotated[tuple[str, ...], NoDecode] = ()
    """Namespaces to serve, comma separated. Empty: all, as one operator per cluster is the common case."""

    forecaster_url: str = ""
    """Base URL of the forecaster. Empty: none; the operator reacts only, and a condition says so."""

    forecaster_timeout_seconds: Annotated[float, Field(gt=0, le=60)] = 5.0
    """Answers come from the forecaster's memory; a slower one is late for this tick anyway."""

    prometheus_url: str = ""
    """Base URL of Prometheus. Empty: demand stays unknown, so replicas are held."""

    prometheus_token_file: Path | None = None
    """File with a bearer token, read for each request. None: no token, as inside most clusters."""

    prometheus_ca_file: Path | None = None
    """CA of Prometheus' certificate. None: the system's."""

    prometheus_tenant_header: str = ""
    """Header that names the tenant in Mimir, Cortex or Thanos. Plain Prometheus has none."""

    prometheus_tenant: str = ""
    """Value of that header."""

    prometheus_timeout_seconds: Annotated[float, Field(gt=0, le=60)] = 5.0
    """A third of a tick: an instant query over minutes answers in milliseconds, or something is wrong."""

    tick_seconds: Annotated[float, Field(ge=0.2, le=300)] = 15.0
    """One scrape interval: looking more often sees nothing new."""

    rate_window_seconds: Annotated[int, Field(ge=15, le=3600)] = 60
    """Arrival rates need four scrapes."""

    metrics_host: str = "0.0.0.0"  # noqa: S104 - a pod is scraped from outside of it
    """Address of /metrics and /healthz."""

    metrics_port: Annotated[int, Field(ge=0, le=65535)] = 8081
    """Port of /metrics and /healthz; not 8080, which is the gateways'."""

    kube_timeout_seconds: Annotated[float, Field(gt=0, le=120)] = 10.0
    """Longest wait for one answer of the API server; it answers writes in well under a second."""

    concurrency: Annotated[int, Field(ge=1, le=256)] = 16
    """Services reconciled at the same time: one slow answer must not hold up a pass."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Decisions and problems; DEBUG adds kopf's own steps."""

    log_format: Literal["json", "text"] = "json"
    """Pods are read by log collectors."""

    @field_validator("namespaces", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value
