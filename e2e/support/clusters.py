"""A named cluster of its own, driven by the command line as a user drives it, for tests that break things."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from e2e.localcluster.layout import REPOSITORY, ClusterPaths, cache, cluster_paths
from e2e.localcluster.processes import Process, recorded

_LONGEST_SECONDS = 900.0  # the images may have to be built


@dataclass(frozen=True, kw_only=True)
class NamedCluster:
    """The cluster of that name, which may or may not exist."""

    name: str

    @property
    def paths(self) -> ClusterPaths:
        """Its folders."""
        return cluster_paths(cache(), {"WARMFRONT_CLUSTER": self.name})

    def command(self, *arguments: str) -> list[str]:
        """The words of one command."""
        return [sys.executable, "-m", "e2e.localcluster", *arguments]

    def environment(self) -> dict[str, str]:
        """Names the cluster."""
        return {**os.environ, "WARMFRONT_CLUSTER": self.name}

    def attempt(self, *arguments: str, text_input: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever the end; standard output and error together."""
        return subprocess.run(
            self.command(*arguments),
            input=text_input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=REPOSITORY,
            env=self.environment(),
            timeout=_LONGEST_SECONDS,
            check=False,
        )

    def run(self, *arguments: str, text_input: str | None = None) -> str:
        """Run a command that must succeed; returns what it said.

        Raises:
            AssertionError: it failed.
        """
        done = self.attempt(*arguments, text_input=text_input)
        assert done.returncode == 0, f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command and do not wait for it."""
        return subprocess.Popen(
            self.command(*arguments), cwd=REPOSITORY, env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kubectl(self, *arguments: str, text_input: str | None = None) -> str:
        """Run kubectl inside."""
        return self.run("kubectl", *arguments, text_input=text_input)

    def get(self, *arguments: str) -> Any:  # noqa: ANN401 - whatever Kubernetes says
        """Objects, parsed."""
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply objects."""
        self.kubectl("apply", "--filename=-", text_input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def processes(self) -> dict[str, Process]:
        """Its processes by name."""
        return recorded(self.paths.processes)

    def kill(self, component: str) -> None:
        """As the kernel does when memory runs out."""
        os.kill(self.processes()[component].pid, signal.SIGKILL)

    def pods_and_events(self) -> str:
        """What one looks at when a pod does not do what it should."""
        pods = self.attempt("kubectl", "get", "pods", "--all-namespaces", "--output=wide").stdout
        return pods + self.attempt("kubectl", "events", "--all-namespaces").stdout

    def wait(self, what: str, holds: Callable[[], bool], *, seconds: float = 60.0) -> None:
        """Ask again and again.

        Raises:
            AssertionError: time is up; with pods and events.
        """
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for {what}\n{self.pods_and_events()}"
            time.sleep(0.2)
