"""Settings of the forecaster, from the environment under one prefix. Each default has its reason."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from warmfront_forecaster.adapters.prometheus_client import PrometheusEndpoint

ENV_PREFIX = "WARMFRONT_FORECASTER_"


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class Settings(BaseSettings):
    """`WARMFRONT_FORECASTER_*`."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_ignore_empty=True)

    host: str = "0.0.0.0"  # noqa: S104 - a pod's address is not known beforehand; the NetworkPolicy says who may come
    port: Annotated[int, Field(ge=1, le=65_535)] = 8_082

    # The name that most installations give it; the chart sets its own.
    prometheus_url: Annotated[str, Field(pattern="^https?://")] = "http://prometheus:9090"
    prometheus_token_file: Path | None = None
    prometheus_ca_file: Path | None = None
    prometheus_tenant_header: str = ""
    prometheus_tenant: str = ""
    # Half of a step: a refresh that takes longer would meet the next one.
    prometheus_timeout_seconds: Annotated[float, Field(gt=0)] = 30.0
    # At once: a small Prometheus runs 20 queries concurrently (`query.max-concurrency`), and others ask too.
    prometheus_concurrency: Annotated[int, Field(ge=1)] = 4

    # Processes that evaluate; one does about a thousand services at the intervals below.
    workers: Annotated[int, Field(ge=1)] = 1
    # An evaluation takes 2-4 s of a core; on a node that is short of CPU ten times that. Beyond it hangs.
    fit_timeout_seconds: Annotated[float, Field(gt=0)] = 300.0
    # What a fit knows is a day old at most; what is scored changes by a day's hours. Hourly follows a change of habits.
    evaluate_seconds: Annotated[float, Field(gt=0)] = 3_600.0
    # After a failure: soon, but not so soon that a service that always fails keeps a worker busy.
    retry_seconds: Annotated[float, Field(gt=0)] = 300.0

    # One step: no new data comes more often.
    refresh_seconds: Annotated[float, Field(gt=0)] = 60.0
    # Prometheus has a sample when it has scraped it and its own clock passed it.
    settle_seconds: Annotated[float, Field(ge=0)] = 5.0
    # The operator asks every 15 s; a service not asked for this long is gone.
    forget_seconds: Annotated[float, Field(gt=0)] = 900.0

    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], BeforeValidator(_upper)] = "INFO"
    # Pods are read by log collectors.
    log_format: Literal["json", "text"] = "json"

    def endpoint(self) -> PrometheusEndpoint:
        """How Prometheus is reached."""
        return PrometheusEndpoint(
            url=self.prometheus_url,
            token_file=self.prometheus_token_file,
            ca_file=self.prometheus_ca_file,
            tenant_header=self.prometheus_tenant_header,
            tenant=self.prometheus_tenant,
            timeout_seconds=self.prometheus_timeout_seconds,
        )
