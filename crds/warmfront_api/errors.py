"""What can go wrong in the API package."""


class WarmfrontApiError(Exception):
    """Root of this package's exceptions."""


class UnsupportedSchemaError(WarmfrontApiError):
    """A model says something that a structural Kubernetes schema cannot; permanent, mend the model."""
