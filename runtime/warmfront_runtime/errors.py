"""Every error of the runtime: one tree, each with its HTTP status and the outcome it counts as.

The wire shape is OpenAI's in vLLM's dialect (`code` is the HTTP status), so that a client sees one dialect, whether the
gateway or the engine refuses. No I/O here: the pure parts raise these too.
"""

import json
from enum import StrEnum
from typing import ClassVar


class Outcome(StrEnum):
    """How a request ended (label `outcome`). `REFUSED` is the client's fault and never an arrival."""

    SERVED = "served"
    SHED = "shed"
    ABANDONED = "abandoned"
    FAILED = "failed"
    REFUSED = "refused"


class WarmfrontRuntimeError(Exception):
    """Root of the tree."""


class ConfigError(WarmfrontRuntimeError):
    """The gateway cannot start with its settings or its file. Permanent: fix the named thing."""


class TransitionError(WarmfrontRuntimeError):
    """A change of state that the lifecycle does not know: a bug of ours."""


class WarmupError(WarmfrontRuntimeError):
    """A warm-up generation did not complete. Retryable."""


class ClientGoneError(WarmfrontRuntimeError):
    """The client closed its connection, or took no byte for too long. There is nobody left to answer."""


class RequestError(WarmfrontRuntimeError):
    """A request that is answered with an error. Subclasses fix status, type and outcome."""

    status: ClassVar[int] = 500
    kind: ClassVar[str] = "InternalServerError"
    outcome: ClassVar[Outcome] = Outcome.FAILED
    retry_after_seconds: ClassVar[int | None] = None

    def __init__(self, message: str = "the gateway failed; its log says why", *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param

    def body(self) -> bytes:
        """The JSON that the client gets, UTF-8."""
        error = {"message": self.message, "type": self.kind, "param": self.param, "code": self.status}
        return json.dumps({"error": error}).encode()

    def event(self) -> bytes:
        """The same as the last two events of a stream that has begun; vLLM closes its failed streams so too."""
        return b"data: " + self.body() + b"\n\ndata: [DONE]\n\n"


class RefusedError(RequestError):
    """The client's fault; sending the same again gives the same answer."""

    status = 400
    kind = "BadRequestError"
    outcome = Outcome.REFUSED


class RouteNotFoundError(RefusedError):
    """A path that is not OpenAI's."""

    status = 404
    kind = "NotFoundError"


class ModelNotFoundError(RefusedError):
    """A model that this service does not serve."""

    status = 404
    kind = "NotFoundError"


class MethodNotAllowedError(RefusedError):
    """A known path with another method."""

    status = 405
    kind = "MethodNotAllowedError"


class BodyTimeoutError(RefusedError):
    """The body did not arrive in time."""

    status = 408
    kind = "RequestTimeoutError"


class BodyTooLargeError(RefusedError):
    """The body is longer than `gateway.limits.maxRequestBytes`."""

    status = 413
    kind = "RequestTooLargeError"


class EncodingRefusedError(RefusedError):
    """A compressed body: its real size is not known before it is unpacked."""

    status = 415
    kind = "UnsupportedMediaTypeError"


class ShedError(RequestError):
    """No room now. The client may come back, here or at another pod."""

    status = 503
    kind = "ServiceUnavailableError"
    outcome = Outcome.SHED
    retry_after_seconds = 1


class EngineUnreachableError(RequestError):
    """The engine takes no connection: it is starting, or it is gone."""

    status = 503
    kind = "ServiceUnavailableError"
    retry_after_seconds = 5


class EngineBrokenError(RequestError):
    """The engine took the request and did not finish its answer."""

    status = 502
    kind = "BadGatewayError"


class RequestTimedOutError(RequestError):
    """Longer than `gateway.limits.requestTimeoutSeconds`."""

    status = 504
    kind = "GatewayTimeoutError"


class DrainCutError(RequestError):
    """The pod stops, and the time for running requests is over."""

    status = 503
    kind = "ServiceUnavailableError"
    retry_after_seconds = 1
