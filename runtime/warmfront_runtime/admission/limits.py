"""Bounds that hold before anything is read or queued: bytes, encoding, concurrency."""

from dataclasses import dataclass

from warmfront_runtime.errors import BodyTooLargeError, EncodingRefusedError, ShedError


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What one pod lets in. All positive."""

    max_request_bytes: int
    max_concurrent_requests: int
    request_timeout_seconds: float


def check_encoding(content_encoding: str | None) -> None:
    """Refuse a compressed body: a small one can unpack to any size.

    Raises:
        EncodingRefusedError: `content_encoding` is anything but absent, empty or `identity`.
    """
    if content_encoding and content_encoding.strip().lower() != "identity":
        raise EncodingRefusedError(f"Content-Encoding {content_encoding!r} is not accepted: send the body uncompressed")


def check_length(length_bytes: int | None, bounds: Bounds) -> None:
    """Refuse a body by its announced or counted length; `None` (chunked) is counted while it is read.

    Raises:
        BodyTooLargeError: it is longer than the bound.
    """
    if length_bytes is not None and length_bytes > bounds.max_request_bytes:
        raise too_large(bounds)


def too_large(bounds: Bounds) -> BodyTooLargeError:
    """The refusal of a long body; the message names the bound and the field that sets it."""
    return BodyTooLargeError(
        f"the request body is longer than {bounds.max_request_bytes} bytes: shorten it "
        "(the service's owner sets spec.gateway.limits.maxRequestBytes)"
    )


class Slots:
    """How many requests are inside, never more than the bound. One event loop; not for threads."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.used = 0

    def take(self) -> None:
        """Take one slot; pair with `give_back`.

        Raises:
            ShedError: all are taken.
        """
        if self.used >= self._bounds.max_concurrent_requests:
            raise ShedError(
                f"this pod already has {self.used} requests in flight, its bound (spec.gateway.limits.maxConcurrentRequests): "
                "try again after the time in Retry-After"
            )
        self.used += 1

    def give_back(self) -> None:
        """Free one slot."""
        self.used -= 1
