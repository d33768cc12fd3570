"""The one exception tree of this package. `retryable`: the same call may succeed later without anybody doing anything."""


class ForecasterError(Exception):
    """Root of all errors this package raises on purpose. The message says what to do."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class PrometheusError(ForecasterError):
    """Prometheus could not be asked, or did not answer with what was asked for."""


class ModelError(ForecasterError):
    """A model could not be fitted, or gave numbers that no demand can have (negative, infinite, not a number)."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message, retryable=retryable)


class WorkerError(ForecasterError):
    """A fit did not come back from its worker process: it took too long, or the process died."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message, retryable=retryable)
