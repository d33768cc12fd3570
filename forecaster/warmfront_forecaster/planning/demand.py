"""Demand, from arrivals: absolute, so it cannot cascade while pods load."""

from warmfront_forecaster.planning.amounts import is_amount, is_usable
from warmfront_forecaster.planning.reasons import Reason
from warmfront_forecaster.planning.types import Capacity, DemandReading


def demand(reading: DemandReading | None, capacity: Capacity) -> float | None:
    """Demand now, in replica-equivalents: 1.0 is all of one replica's throughput.

    `d = lam_p / prefill + lam_d / decode` with lam = arrivals per second times mean tokens per request.

    Returns:
        None where it is unknown (`unknown_reason` says why). Absent is not zero; zero arrivals with nothing waiting is.
    """
    if reading is None or unknown_reason(reading, capacity) is not None:
        return None
    return reading.arrivals_per_second * request_seconds(reading, capacity)


def unknown_reason(reading: DemandReading | None, capacity: Capacity) -> Reason | None:
    """Why demand cannot be computed; None where it can."""
    if reading is None:
        return Reason.DEMAND_UNKNOWN
    if not is_usable(capacity):
        return Reason.CAPACITY_INVALID
    if not _is_believable(reading):
        return Reason.DEMAND_INVALID
    if _asks_for_work(reading) and (reading.prompt_tokens is None or reading.output_tokens is None):
        return Reason.TOKENS_UNKNOWN
    product = max(reading.arrivals_per_second, reading.backlog_requests) * request_seconds(reading, capacity)
    return None if is_amount(product) else Reason.DEMAND_INVALID


def request_seconds(reading: DemandReading, capacity: Capacity) -> float:
    """Seconds of a whole replica that the mean request takes; unknown means count as nothing (see `unknown_reason`)."""
    prompt_seconds = (reading.prompt_tokens or 0.0) / capacity.prefill_tokens_per_second
    return prompt_seconds + (reading.output_tokens or 0.0) / capacity.decode_tokens_per_second


def _is_believable(reading: DemandReading) -> bool:
    means = (reading.prompt_tokens, reading.output_tokens)
    return (
        is_amount(reading.arrivals_per_second)
        and is_amount(reading.backlog_requests)
        and all(mean is None or is_amount(mean) for mean in means)
    )


def _asks_for_work(reading: DemandReading) -> bool:
    return reading.arrivals_per_second > 0 or reading.backlog_requests > 0
