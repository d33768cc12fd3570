"""The cluster as a user works on it: kubectl and Helm."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from e2e.support.errors import CommandError, GaveUpError
from e2e.support.programs import run

POLL_SECONDS: Final = 1.0
T = TypeVar("T")


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    """Run kubectl, which must succeed; returns what it printed."""
    return run("kubectl", *arguments, stdin=stdin)


def get(kind: str, *arguments: str) -> dict[str, Any]:
    """Read resources as JSON; without a name, a list."""
    parsed: dict[str, Any] = json.loads(kubectl("get", kind, *arguments, "--output=json"))
    return parsed


def apply_file(path: Path) -> None:
    """Apply a manifest as a user would."""
    kubectl("apply", f"--filename={path}")


def apply_manifest(manifest: Mapping[str, Any], *, manager: str = "user") -> dict[str, Any]:
    """Apply one resource server-side, as GitOps tools do, and return what is stored."""
    arguments = ("--server-side", f"--field-manager={manager}", "--filename=-", "--output=json")
    stored: dict[str, Any] = json.loads(kubectl("apply", *arguments, stdin=json.dumps(manifest)))
    return stored


def apply_objects(*objects: Mapping[str, Any]) -> None:
    """Apply objects that are made here, server-side: their size does not allow the annotation of a client-side apply."""
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=manifest)


def rolled_out(namespace: str, deployment: str) -> None:
    """Wait until a Deployment is complete."""
    kubectl("rollout", "status", f"deployment/{deployment}", f"--namespace={namespace}", "--timeout=150s")


def service_address(namespace: str, name: str) -> str:
    """Return the cluster address of a Service."""
    return str(get("service", name, f"--namespace={namespace}")["spec"]["clusterIP"])


def helm_install(release: str, chart: Path, *, namespace: str, values: Sequence[str] = ()) -> None:
    """Install or upgrade a chart and wait until what it starts is ready."""
    settings = [f"--set={value}" for value in values]
    common = [f"--namespace={namespace}", "--create-namespace", "--wait", "--timeout=150s"]
    run("helm", "upgrade", "--install", release, str(chart), *common, *settings)


def wait_for(what: str, probe: Callable[[], T | None], *, seconds: float) -> T:
    """Ask again and again until the answer is not None; an answer that fails for a moment counts as None.

    Raises:
        GaveUpError: Not within `seconds`; the message holds `what`, and what failed last.
    """
    deadline = time.monotonic() + seconds
    last = ""
    while time.monotonic() < deadline:
        try:
            found = probe()
        except (CommandError, OSError) as error:
            found, last = None, f" (last: {error})"
        if found is not None:
            return found
        time.sleep(POLL_SECONDS)
    raise GaveUpError(f"{what}: not within {seconds:.0f} s{last}")
