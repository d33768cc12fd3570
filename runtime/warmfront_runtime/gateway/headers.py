"""Which headers cross the gateway, in each direction. Pure.

To the engine goes a short list, so that nothing else can: no credentials or cookies (the engine has no use for them and may log
them), nothing that steers the engine (`X-data-parallel-rank`), nothing about connections or framing.
"""

import re
import secrets
from collections.abc import Iterable, Mapping

REQUEST_ID = "X-Request-Id"
_TO_ENGINE = ("Content-Type", "Accept", "traceparent", "tracestate")
_NOT_TO_CLIENT = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        # Ours to say.
        "date",
        "server",
        "x-request-id",
    }
)
_GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


def request_id(given: str | None) -> str:
    """The client's own id where it is plain and short, else a new one."""
    return given if given and _GOOD_ID.fullmatch(given) else secrets.token_hex(16)


def to_engine(headers: Mapping[str, str], *, id_of_request: str) -> dict[str, str]:
    """Headers for the engine.

    Its request id gets a suffix: vLLM aborts by id, and two clients that chose the same id could end each other's requests.
    `identity`, because a compressed stream cannot be read in passing.
    """
    kept = {name: headers[name] for name in _TO_ENGINE if name in headers}
    return {**kept, "Accept-Encoding": "identity", REQUEST_ID: f"{id_of_request}-{secrets.token_hex(4)}"}


def to_client(headers: Iterable[tuple[str, str]], connection: str = "") -> list[tuple[str, str]]:
    """Headers for the client: all but those of this one connection (and those that its `Connection` header names)."""
    dropped = _NOT_TO_CLIENT | {token.strip().lower() for token in connection.split(",")}
    return [(name, value) for name, value in headers if name.lower() not in dropped]
