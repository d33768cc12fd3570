"""A small client of the API server for what `up` needs: it works before kubectl is there and takes milliseconds."""

import http.client
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from e2e.localcluster.errors import ClusterBrokenError
from e2e.localcluster.layout import ClusterPaths
from e2e.localcluster.namespaces import call_in_network
from e2e.localcluster.network import API_ADDRESS, API_PORT


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Status and parsed body; the body is text where it is not JSON."""

    status: int
    body: Any


def parse(raw: bytes) -> Any:  # noqa: ANN401 - whatever the server says
    """JSON where it is JSON."""
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


class Api:
    """Requests as the administrator, each made inside the cluster's network and verified against its authority."""

    def __init__(self, paths: ClusterPaths) -> None:
        self._namespace = paths.network_namespace_file
        self._tls = ssl.create_default_context(cafile=str(paths.pki / "ca.crt"))
        self._tls.load_cert_chain(paths.pki / "admin.crt", paths.pki / "admin.key")

    def request(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Answer:
        """One request.

        Raises:
            OSError: the server cannot be reached.
        """
        return call_in_network(self._namespace, lambda: self._request(method, path, body, kind))

    def _request(self, method: str, path: str, body: object, kind: str) -> Answer:
        connection = http.client.HTTPSConnection(API_ADDRESS, API_PORT, timeout=10, context=self._tls)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, body=data, headers={"Content-Type": kind})
            response = connection.getresponse()
            return Answer(status=response.status, body=parse(response.read()))
        finally:
            connection.close()

    def get(self, path: str) -> Answer | None:
        """One object; None when the server cannot be reached now."""
        try:
            return self.request("GET", path)
        except OSError:
            return None

    def apply(self, path: str, body: object) -> None:
        """Server-side apply.

        Raises:
            ClusterBrokenError: the server refuses.
        """
        answer = self.request("PATCH", f"{path}?fieldManager=localcluster&force=true", body, "application/apply-patch+yaml")
        if answer.status not in (200, 201):
            raise ClusterBrokenError(f"The API server refused {path}: {answer.body}")

    def ready(self) -> bool:
        """Whether the API server answers that it is ready."""
        answer = self.get("/readyz")
        return answer is not None and answer.status == http.client.OK


def wait_until(what: str, holds: Callable[[], bool], *, seconds: float, hint: Callable[[], str] = lambda: "") -> None:
    """Ask again and again.

    Raises:
        ClusterBrokenError: time is up; `hint` adds what is known.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise ClusterBrokenError(f"Waited {seconds:.0f} s in vain for {what}.\n{hint()}".rstrip())
        time.sleep(0.1)
