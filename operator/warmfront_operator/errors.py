"""All errors of the operator. Each message says what to do."""

# Server-side apply answers 500 to a field that its type does not have, before validation could answer 400.
NOT_OF_THE_TYPE = "failed to create typed patch object"


class OperatorError(Exception):
    """Base of all. `retryable`: the same call may succeed at the next tick, without anybody's help."""

    retryable = False


class ConfigurationError(OperatorError):
    """The operator cannot start with these settings, in this place."""


class KubeError(OperatorError):
    """The API server did not do what was asked. `status` is the HTTP status; None: it did not answer."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def refused(self) -> bool:
        """Asking again changes nothing: somebody must mend the object, or the operator's rights."""
        return self.status in (400, 403, 405, 413, 415, 422) or NOT_OF_THE_TYPE in str(self)


class NameTakenError(OperatorError):
    """An object that is not ours holds a child's name; it is never written."""


class PredecessorError(OperatorError):
    """A child of a deleted service of the same name is still there; garbage collection is about to take it."""

    retryable = True


class DemandError(OperatorError):
    """Demand cannot be read from Prometheus now."""

    retryable = True


class ForecasterError(OperatorError):
    """The forecaster gave no usable answer."""

    retryable = True
