"""What a fleet is asked to do: requests with their times and lengths."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Lengths:
    """Prompt and output tokens of requests, pairwise: two arrays of one shape, all at least 1."""

    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.prompt_tokens.shape != self.output_tokens.shape or self.prompt_tokens.ndim != 1 or self.prompt_tokens.size == 0:
            raise ValueError("lengths: prompt and output tokens must be pairs, at least one")
        if min(self.prompt_tokens.min(), self.output_tokens.min()) < 1:
            raise ValueError("lengths: every prompt and every output needs at least one token")

    def __len__(self) -> int:
        return len(self.prompt_tokens)

    def take(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        """Return the pairs at these places."""
        return type(self)(prompt_tokens=self.prompt_tokens[chosen], output_tokens=self.output_tokens[chosen])


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """Requests in order of arrival. `draws` is each one's own luck in routing, uniform in [0, 1)."""

    arrival_seconds: NDArray[np.float64]
    lengths: Lengths
    draws: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not self.arrival_seconds.shape == self.draws.shape == self.lengths.prompt_tokens.shape:
            raise ValueError("workload: every request needs an arrival, two lengths, a draw")
        if not (np.isfinite(self.arrival_seconds).all() and (np.diff(self.arrival_seconds) >= 0).all()):
            raise ValueError("workload: arrivals must be finite, in ascending order")
        if not ((self.draws >= 0) & (self.draws < 1)).all():
            raise ValueError("workload: draws must lie in [0, 1)")

    def __len__(self) -> int:
        return len(self.arrival_seconds)
