"""The simulator as a process: closed until it is up, gone at once when told."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def simulator(*, load_seconds: float, port: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "e2e.enginesim", "--host=127.0.0.1", f"--port={port}"]
    environment = {"ENGINESIM_LOAD_SECONDS": str(load_seconds), "PATH": ""}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_line(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr
    for line in process.stderr:
        if words in line:
            return
    pytest.fail(f"the simulator ended without saying {words!r}")


def test_it_refuses_connections_while_it_loads_and_ends_at_once_in_the_middle_of_it() -> None:
    port = free_port()
    with simulator(load_seconds=600, port=port) as process:
        wait_for_line(process, "loading weights")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=1)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
        assert time.monotonic() - began < 5


def test_it_ends_at_once_while_a_stream_is_open() -> None:
    port = free_port()
    with simulator(load_seconds=0, port=port) as process:
        wait_for_line(process, "serving")
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        body = b'{"prompt": "Once", "max_tokens": 8000, "ignore_eos": true, "stream": true}'
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        assert connection.getresponse().read(20).startswith(b'data: {"id":"cmpl-')
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
        assert time.monotonic() - began < 5
        connection.close()


def test_a_busy_port_fails_before_anything_is_loaded() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        with simulator(load_seconds=600, port=port) as process:
            assert process.wait(timeout=30) == 2
            assert process.stderr
            assert "cannot listen on 127.0.0.1:" in process.stderr.read()
