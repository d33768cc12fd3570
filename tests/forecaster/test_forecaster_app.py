"""The HTTP API and the settings."""

import httpx
import pytest
from fastapi import FastAPI
from pydantic import ValidationError

from warmfront_forecaster.__main__ import main
from warmfront_forecaster.adapters.prometheus_source import Holdings, ServiceKey
from warmfront_forecaster.app import make_app
from warmfront_forecaster.contract import FORECASTS_PATH, ForecastsResponse
from warmfront_forecaster.domain.demand import Traffic, blank
from warmfront_forecaster.domain.evaluation import Evaluation
from warmfront_forecaster.fitting import FitJob
from warmfront_forecaster.settings import Settings

NOW = 1_800_000_000.0
BODY = {
    "now": "2027-01-15T08:00:00Z",
    "services": [
        {
            "namespace": "ml",
            "name": "chat",
            "leadTimeSeconds": 150,
            "capacity": {"prefillTokensPerSecond": 8_000, "decodeTokensPerSecond": 900, "targetUtilization": 0.75},
            "aFieldOfTomorrow": 1,
        }
    ],
}


class Empty:
    """A Prometheus that holds nothing."""

    def holdings(self, service: ServiceKey, start: int) -> Holdings:  # noqa: ARG002
        return Holdings()

    def spacing_seconds(self, service: ServiceKey) -> float | None:  # noqa: ARG002
        return None

    def traffic(self, service: ServiceKey, start: int, end: int, spacing_seconds: float | None = None) -> Traffic:  # noqa: ARG002
        return blank(start, end)


async def never(job: FitJob) -> Evaluation:
    raise AssertionError(f"nothing is to be fitted, but {job} was")


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def app(clock: Clock) -> FastAPI:
    return make_app(settings=Settings(), source=Empty(), fit=never, clock=clock)


def client(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://forecaster")


async def test_a_service_that_nobody_knew_is_answered_at_once(app: FastAPI):
    async with app.router.lifespan_context(app), client(app) as http:
        answer = await http.post(FORECASTS_PATH, json=BODY)
    assert answer.status_code == 200
    (service,) = ForecastsResponse.model_validate_json(answer.content).services
    assert (service.namespace, service.name, service.state, service.reason) == ("ml", "chat", "Learning", "FirstFitPending")
    assert answer.json()["services"][0]["maxDemandSeen"] is None


async def test_a_question_that_is_wrong_names_its_field(app: FastAPI):
    wrong = {**BODY, "services": [{**BODY["services"][0], "leadTimeSeconds": -1}]}  # type: ignore[dict-item, index]
    async with client(app) as http:
        answer = await http.post(FORECASTS_PATH, json=wrong)
    assert answer.status_code == 422
    assert "leadTimeSeconds" in answer.text


async def test_health_follows_the_loop(app: FastAPI, clock: Clock):
    async with client(app) as http:
        assert [(await http.get(path)).status_code for path in ("/healthz", "/readyz")] == [200, 200]
        clock.now += 61  # and no turn in it: the loop does not run here
        assert [(await http.get(path)).status_code for path in ("/healthz", "/readyz")] == [503, 503]


async def test_metrics_count_services_by_state(app: FastAPI):
    async with client(app) as http:
        await http.post(FORECASTS_PATH, json=BODY)
        text = (await http.get("/metrics")).text
    assert 'warmfront_forecaster_services{state="Learning"} 1.0' in text
    assert 'warmfront_forecaster_services{state="Trusted"} 0.0' in text
    assert "warmfront_forecaster_fits_total 0.0" in text


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WARMFRONT_FORECASTER_PROMETHEUS_URL", "https://thanos.example:9091")
    monkeypatch.setenv("WARMFRONT_FORECASTER_PROMETHEUS_TOKEN_FILE", "/var/run/token")
    monkeypatch.setenv("WARMFRONT_FORECASTER_PROMETHEUS_TENANT", "team-a")
    endpoint = Settings().endpoint()
    assert (endpoint.url, str(endpoint.token_file), endpoint.tenant) == (
        "https://thanos.example:9091",
        "/var/run/token",
        "team-a",
    )


def test_an_empty_file_setting_is_no_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WARMFRONT_FORECASTER_PROMETHEUS_CA_FILE", "")
    assert Settings().endpoint().ca_file is None


def test_a_wrong_setting_ends_the_command_with_its_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("WARMFRONT_FORECASTER_PORT", "0")
    with pytest.raises(ValidationError):
        Settings()
    assert main([]) == 2
    assert "WARMFRONT_FORECASTER_PORT" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "allowed"), [("LOG_LEVEL", "'WARNING'"), ("PROMETHEUS_URL", "https?://"), ("LOG_FORMAT", "'json' or 'text'")]
)
def test_a_wrong_word_is_answered_in_one_line_with_those_allowed(
    name: str, allowed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv(f"WARMFRONT_FORECASTER_{name}", "banana")
    assert main([]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"WARMFRONT_FORECASTER_{name}" in line
    assert allowed in line
    assert "banana" in line.lower()


def test_a_level_may_be_written_small(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WARMFRONT_FORECASTER_LOG_LEVEL", "debug")
    assert Settings().log_level == "DEBUG"
