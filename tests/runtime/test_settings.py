"""What the process is told, and what it says when that is wrong."""

import json
import socket
from pathlib import Path

import pytest

from warmfront_api.gateway_config import GatewayConfig
from warmfront_runtime.errors import ConfigError
from warmfront_runtime.gateway.__main__ import main
from warmfront_runtime.settings import load_config, load_settings

CONFIG = GatewayConfig(service="chat", namespace="ml", model_name="tiny")


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "gateway.json"
    path.write_text(json.dumps(CONFIG.to_wire()))
    monkeypatch.setenv("WARMFRONT_GATEWAY_CONFIG", str(path))
    return path


def test_the_operators_file_is_read_as_it_writes_it(config_file: Path):
    assert load_config(config_file) == CONFIG


def test_the_defaults_are_those_of_a_pod():
    settings = load_settings()
    assert str(settings.config) == "/etc/warmfront/gateway.json"
    assert (settings.http_port, settings.metrics_port, settings.accept_after_sigterm_seconds) == (8080, 9090, 5)


def test_what_kubernetes_adds_for_a_service_of_our_name_does_no_harm(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WARMFRONT_GATEWAY_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv("WARMFRONT_GATEWAY_SERVICE_HOST", "10.0.0.1")
    assert load_settings().http_port == 8080


def test_a_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WARMFRONT_GATEWAY_METRICS_PORT", "high")
    with pytest.raises(ConfigError, match="WARMFRONT_GATEWAY_METRICS_PORT"):
        load_settings()


def test_a_bad_field_is_named(config_file: Path):
    config_file.write_text('{"service": "chat", "namespace": "ml", "modelName": "tiny", "limits": {"maxRequestBytes": 0}}')
    with pytest.raises(ConfigError, match=r"gateway\.json: limits\.maxRequestBytes"):
        load_config(config_file)


def test_a_missing_file_stops_the_process_with_words(config_file: Path, capsys: pytest.CaptureFixture[str]):
    config_file.unlink()
    assert main([]) == 2
    assert "mount the service's ConfigMap" in capsys.readouterr().err


@pytest.mark.usefixtures("config_file")
def test_a_port_that_is_taken_stops_the_process_with_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("WARMFRONT_GATEWAY_HOST", "127.0.0.1")
        monkeypatch.setenv("WARMFRONT_GATEWAY_METRICS_PORT", str(taken.getsockname()[1]))
        assert main([]) == 2
    assert "cannot listen" in capsys.readouterr().err
