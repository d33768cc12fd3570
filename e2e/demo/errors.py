"""Errors of the demo."""


class DemoError(Exception):
    """The demo cannot go on; the message says why and what to do."""


class CommandError(DemoError):
    """A program that the demo needs failed."""


class GaveUpError(DemoError):
    """Something did not come true in time."""
