"""Arrivals of a service, and of one of its replicas: a renewal process whose burstiness is one number."""

import numpy as np
from numpy.typing import NDArray


def arrivals(rng: np.random.Generator, *, count: int, dispersion: float, islands: int = 1) -> NDArray[np.float64]:
    """Times of `count` arrivals at a mean rate of one per second, ascending, shape (count,). Divide by a rate for other rates.

    The service's gaps are gamma distributed with a squared coefficient of variation of `dispersion` (1 is Poisson), which is
    also what variance / mean of the counts tends to in long windows. Gamma gaps fit recorded LLM traffic (ServeGen, 2025).

    With `islands` n > 1 these are the arrivals at *one* of n replicas when each request goes to any of them by its own luck
    (kube-proxy): a gap is then the sum of K service gaps, K geometric with mean n. Exact, and smoother than the service's own.

    Raises:
        ValueError: `count` or `islands` below 1, or a dispersion that is not above 0 and finite.
    """
    if count < 1 or islands < 1:
        raise ValueError(f"arrivals: count and islands must be at least 1, got {count} and {islands}")
    if not 0 < dispersion < float("inf"):
        raise ValueError(f"arrivals: dispersion must be finite and above 0 (1 is Poisson), got {dispersion}")
    merged = rng.geometric(1 / islands, count)
    gaps = rng.gamma(merged / dispersion, dispersion / islands)
    return np.cumsum(gaps)
