"""Lists the pods that ask to be scraped into a file for Prometheus' file_sd. Runs in its pod; standard library only."""

import json
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
URL = "https://kubernetes.default.svc/api/v1/pods"
EVERY_SECONDS = 3.0
TIMEOUT_SECONDS = 10.0


def pods() -> list[dict[str, Any]]:
    """Every pod of the cluster."""
    token = (ACCOUNT / "token").read_text().strip()
    request = urllib.request.Request(URL, headers={"Authorization": f"Bearer {token}"})
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=trust) as answer:
        listed: list[dict[str, Any]] = json.load(answer)["items"]
        return listed


def target(pod: dict[str, Any]) -> dict[str, Any] | None:
    """One entry of file_sd; None for a pod that asks for no scraping, or has no address (yet, or any more)."""
    notes, address = pod["metadata"].get("annotations", {}), pod["status"].get("podIP")
    if notes.get("prometheus.io/scrape") != "true" or not address or pod["status"].get("phase") != "Running":
        return None
    labels = {"namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}
    return {"targets": [f"{address}:{notes['prometheus.io/port']}"], "labels": labels}


def write(path: Path) -> None:
    """Replace the file in one step: Prometheus may read it at any time."""
    found = [entry for pod in pods() if (entry := target(pod))]
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(found))
    draft.replace(path)


def main() -> None:
    """Write until stopped; the last list stays in force while the API server does not answer."""
    while True:
        try:
            write(Path(sys.argv[1]))
        except OSError as error:
            print(f"the pods cannot be listed just now: {error}", file=sys.stderr, flush=True)
        time.sleep(EVERY_SECONDS)


if __name__ == "__main__":
    main()
