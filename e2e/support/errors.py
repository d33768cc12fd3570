"""Errors of what the tests, the demo and the benchmarks share."""


class SupportError(Exception):
    """Something in or around the cluster is not as it must be; the message says what, and what to do."""


class CommandError(SupportError):
    """A program failed, or is not there."""


class GaveUpError(SupportError):
    """Something did not come true in time."""
