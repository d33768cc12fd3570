"""Renders the charts with the real Helm."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHARTS = Path(__file__).parents[2] / "charts"
Values = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """What Helm made of a chart."""

    objects: list[dict[str, Any]]

    def named(self, kind: str, suffix: str = "", namespace: str | None = None) -> dict[str, Any]:
        """The one object of this kind whose name ends so."""
        [found] = [
            item
            for item in self.objects
            if item["kind"] == kind
            and item["metadata"]["name"].endswith(suffix)
            and (namespace is None or item["metadata"].get("namespace") == namespace)
        ]
        return found

    def kinds(self) -> list[str]:
        """Kinds with their names, sorted."""
        return sorted(f"{item['kind']}/{item['metadata']['name']}" for item in self.objects)

    def pod(self, component: str) -> dict[str, Any]:
        """The pod template of a component."""
        template: dict[str, Any] = self.named("Deployment", component)["spec"]["template"]
        return template

    def container(self, component: str) -> dict[str, Any]:
        """The one container of a component."""
        [container] = self.pod(component)["spec"]["containers"]
        return dict(container)

    def env(self, component: str) -> dict[str, str]:
        """The environment of a component's container."""
        return {item["name"]: item["value"] for item in self.container(component)["env"]}


@dataclass(frozen=True, kw_only=True)
class Helm:
    """Runs Helm with folders of its own, so that nothing of the machine's configuration matters."""

    binary: Path
    home: Path

    def __call__(self, *arguments: str, values: Values | None = None) -> subprocess.CompletedProcess[str]:
        """One call; `values` as `--values` does."""
        homes = {f"HELM_{name}_HOME": str(self.home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        return subprocess.run(
            [self.binary, *arguments, "--values", "-"],
            input=json.dumps(values or {}),
            env={**os.environ, **homes, "KUBECONFIG": os.devnull},
            capture_output=True,
            text=True,
            check=False,
        )

    def render(self, values: Values | None = None, *, chart: str = "warmfront", release: str = "wf") -> Rendered:
        """The objects of a chart in the namespace `ops`."""
        done = self("template", release, str(CHARTS / chart), "--namespace", "ops", values=values)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return Rendered(objects=[item for item in yaml.safe_load_all(done.stdout) if item])

    def refusal(self, values: Values) -> str:
        """What Helm says of values that it must refuse."""
        done = self("template", "wf", str(CHARTS / "warmfront"), values=values)
        assert done.returncode != 0, "the values were taken"
        return done.stderr
