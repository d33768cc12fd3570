"""The Prometheus HTTP API, as the operator and the forecaster ask it. The only importer of prometheus_api_client.

Synchronous: callers on an event loop run it in a thread. Needs no numeric library, because the operator imports it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import requests
from prometheus_api_client import PrometheusConnect
from prometheus_api_client.exceptions import PrometheusApiClientException
from requests.auth import AuthBase
from urllib3.util.retry import Retry

from warmfront_forecaster.errors import PrometheusError

__all__ = ["MAX_POINTS", "PrometheusClient", "PrometheusEndpoint", "PrometheusError", "Sample", "Series", "connect"]

MAX_POINTS = 11_000
"""Points per series of one range query. Prometheus refuses more (`maxPointsPerSeries` in web/api/v1)."""

RETRYABLE_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
BODY_CHARACTERS = 300  # of an error answer, in our message: enough for Prometheus' own sentence


@dataclass(frozen=True, kw_only=True)
class PrometheusEndpoint:
    """Where Prometheus is and how to be let in.

    `token_file` is read for each request: projected tokens are replaced about hourly. `tenant_header` with `tenant`
    is what multi-tenant stores ask for (`X-Scope-OrgID` in Mimir, `THANOS-TENANT` in Thanos).
    """

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    tenant_header: str = ""
    tenant: str = ""
    timeout_seconds: float = 10.0


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One series' value at one time (Unix seconds). Always finite."""

    labels: dict[str, str]
    time: float
    value: float


@dataclass(frozen=True, kw_only=True)
class Series:
    """One series over a range: `times` in Unix seconds, ascending, and as many `values`, all finite. Gaps are simply absent."""

    labels: dict[str, str]
    times: tuple[float, ...]
    values: tuple[float, ...]


class _TokenFile(AuthBase):
    """Bearer token, read anew for each request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._read()}"
        return request

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PrometheusError(
                f"the Prometheus token file {self._path} cannot be read ({error}): mount it, or unset it", retryable=False
            ) from error
        if not token:
            raise PrometheusError(
                f"the Prometheus token file {self._path} is empty: put the token in, or unset it", retryable=False
            )
        return token


def _session(endpoint: PrometheusEndpoint) -> requests.Session:
    session = requests.Session()
    session.verify = str(endpoint.ca_file) if endpoint.ca_file else True
    if endpoint.token_file:
        session.auth = _TokenFile(endpoint.token_file)
    if endpoint.tenant_header and endpoint.tenant:
        session.headers[endpoint.tenant_header] = endpoint.tenant
    session.hooks["response"].append(_refuse_error_status)
    return session


def _refuse_error_status(response: requests.Response, *_: object, **__: object) -> requests.Response:
    """Raise while status and body are still at hand: the library's own exception keeps them only as text."""
    if response.status_code >= requests.codes.bad_request:
        raise PrometheusError(_status_message(response), retryable=response.status_code in RETRYABLE_STATUS)
    return response


_ADVICE = {
    401: "check the token (PROMETHEUS_TOKEN_FILE)",
    403: "the token is known but may not query; check its rights, and the tenant header",
    404: "check the path of the Prometheus URL (chart value prometheus.url)",
    422: "Prometheus understood the query but would not run it",
    429: "Prometheus is limiting queries; it will be asked again",
    503: "Prometheus is busy or starting; it will be asked again",
}


def _status_message(response: requests.Response) -> str:
    advice = _ADVICE.get(response.status_code)
    tail = f": {advice}" if advice else ""
    return f"Prometheus answered HTTP {response.status_code} ({_body(response)}){tail}"


def _body(response: requests.Response) -> str:
    try:
        answer = response.json()
    except ValueError:
        return response.text[:BODY_CHARACTERS]
    told = answer.get("error") if isinstance(answer, dict) else None
    return str(told or response.text)[:BODY_CHARACTERS]


# In order: a later class may be a base of an earlier one (requests' SSLError is a ConnectionError, and all are OSErrors).
_FAILURES: tuple[tuple[type[Exception], bool, str], ...] = (
    (requests.exceptions.SSLError, False, "the certificate of {url} is not trusted ({error}): check PROMETHEUS_CA_FILE"),
    (requests.Timeout, True, "Prometheus at {url} did not answer in time: it will be asked again"),
    (requests.exceptions.JSONDecodeError, False, "{url} does not answer in JSON: is it the address of a Prometheus API?"),
    (requests.ConnectionError, True, "Prometheus at {url} cannot be reached ({error}): it will be asked again"),
    (requests.exceptions.ChunkedEncodingError, True, "the answer of {url} broke off ({error}): it will be asked again"),
    (
        requests.RequestException,
        False,
        "Prometheus at {url} cannot be asked ({error}): check the Prometheus URL (chart value prometheus.url)",
    ),
    (OSError, False, "Prometheus at {url} cannot be asked ({error}): check PROMETHEUS_CA_FILE"),
)


def _translate(error: Exception, url: str) -> PrometheusError:
    """Each way in which a request can fail, as one of ours."""
    for kind, retryable, words in _FAILURES:
        if isinstance(error, kind):
            return PrometheusError(words.format(url=url, error=_cause(error)), retryable=retryable)
    return _malformed(error)


def _cause(error: Exception) -> str:
    """The innermost reason: the layers around it repeat the query and say nothing more."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return str(error) if reason is None else str(reason).rpartition(": ")[2]


@dataclass(frozen=True)
class PrometheusClient:
    """One session with one Prometheus. Made by `connect`; may be used from several threads."""

    endpoint: PrometheusEndpoint
    _library: PrometheusConnect = field(repr=False)

    def query(self, promql: str, at: float | None = None) -> list[Sample]:
        """Instant query at the time `at` (Unix seconds; None: now). Series without a finite value are left out.

        Raises:
            PrometheusError: no answer, a refusal, or an answer of another shape.
        """
        params = {} if at is None else {"time": f"{at:.3f}"}
        answer = self._call(lambda: self._library.custom_query(promql, params=params))
        return [sample for item in _items(answer) if (sample := _sample(item)) is not None]

    def query_range(self, promql: str, start: float, end: float, step_seconds: int) -> list[Series]:
        """Range query with both ends included (Unix seconds, rounded to whole ones), in as many requests as its points need.

        Raises:
            PrometheusError: as for `query`; a failed part fails the whole.
        """
        merged: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}
        for first, last in _chunks(round(start), round(end), step_seconds):
            for item in self._range(promql, first, last, step_seconds):
                merged.setdefault(tuple(sorted(_labels(item).items())), {}).update(_points(item))
        return [
            Series(labels=dict(labels), times=tuple(sorted(points)), values=tuple(points[t] for t in sorted(points)))
            for labels, points in merged.items()
            if points
        ]

    def close(self) -> None:
        """Give the connections back."""
        self._library.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _range(self, promql: str, first: int, last: int, step_seconds: int) -> list[Mapping[str, Any]]:
        ends = (datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC))
        return _items(self._call(lambda: self._library.custom_query_range(promql, *ends, step=str(step_seconds))))

    def _call(self, ask: Callable[[], object]) -> object:
        try:
            return ask()
        except (PrometheusApiClientException, OSError, KeyError, TypeError, ValueError) as error:
            raise _translate(error, self.endpoint.url) from error


def _malformed(what: object) -> PrometheusError:
    return PrometheusError(
        f"the answer has not the shape of Prometheus' API ({what!r}): check the Prometheus URL (chart value prometheus.url)",
        retryable=False,
    )


def _chunks(start: int, end: int, step_seconds: int) -> Iterator[tuple[int, int]]:
    """Split [start, end] into ranges of at most MAX_POINTS points, none of them asked for twice."""
    if step_seconds < 1:
        raise ValueError(f"step_seconds must be a positive whole number, not {step_seconds}")
    while start <= end:
        last = min(end, start + (MAX_POINTS - 1) * step_seconds)
        yield start, last
        start = last + step_seconds


def _items(answer: object) -> list[Mapping[str, Any]]:
    if not isinstance(answer, list) or not all(isinstance(item, Mapping) for item in answer):
        raise _malformed(answer)
    return answer


def _labels(item: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in item.get("metric", {}).items()}


def _points(item: Mapping[str, Any]) -> dict[float, float]:
    """Finite points by time. NaN is Prometheus' word for "no value" (0/0, stale), infinity for x/0: both are missing."""
    try:
        pairs = [(float(time), float(value)) for time, value in item.get("values", ())]
    except (TypeError, ValueError) as error:
        raise _malformed(item) from error
    return {time: value for time, value in pairs if math.isfinite(value)}


def _sample(item: Mapping[str, Any]) -> Sample | None:
    points = _points({"values": [item["value"]] if "value" in item else []})
    return next((Sample(labels=_labels(item), time=time, value=value) for time, value in points.items()), None)


def connect(endpoint: PrometheusEndpoint) -> PrometheusClient:
    """Make a client. Sends nothing yet.

    One retry, and only of a connection that could not be opened: whoever asks does so again at the next tick, and
    the library's own default (three retries with growing pauses, on 5xx too) would outlast a tick.
    """
    retry = Retry(total=1, connect=1, read=False, status=0, redirect=3, other=0, backoff_factor=0.1)
    url = endpoint.url.rstrip("/")
    library = PrometheusConnect(url=url, session=_session(endpoint), retry=retry, timeout=endpoint.timeout_seconds)
    return PrometheusClient(endpoint, library)
