"""What the simulator raises. An `ApiError` becomes an answer in the shape of vLLM's own."""

from http import HTTPStatus
from typing import Any


class EngineSimError(Exception):
    """Root of all."""


class ConfigurationError(EngineSimError):
    """The flags or settings do not make an engine; the message says which to change."""


class ApiError(EngineSimError):
    """A request that gets an error answer."""

    status = HTTPStatus.BAD_REQUEST
    kind = "BadRequestError"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param

    def body(self) -> dict[str, Any]:
        """The JSON body."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.status.value}}


class InvalidValueError(ApiError):
    """A well-formed request with a value that the engine refuses."""

    @classmethod
    def of(cls, message: str, *, param: str, value: object = None) -> "InvalidValueError":
        """With vLLM's suffix that names the parameter (and the value, when there is one)."""
        suffix = f"(parameter={param})" if value is None else f"(parameter={param}, value={value})"
        return cls(f"{message} {suffix}", param=param)


class MalformedRequestError(ApiError):
    """Not JSON, or not of the request's shape."""

    kind = "Bad Request"


class UnknownModelError(ApiError):
    """The request names a model that is not served."""

    status = HTTPStatus.NOT_FOUND
    kind = "NotFoundError"


class QueueFullError(ApiError):
    """`--max-num-queued-reqs` is reached. vLLM's type is the HTTP phrase here."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    kind = HTTPStatus.SERVICE_UNAVAILABLE.phrase

    def __init__(self) -> None:
        super().__init__(
            "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
        )
