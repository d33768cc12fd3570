"""Errors of the backfill."""


class HistoryError(Exception):
    """History could not be made; the message says what to do."""


class TraceError(HistoryError):
    """The recorded rates are not usable."""


class BackfillError(HistoryError):
    """promtool did not make the blocks."""
