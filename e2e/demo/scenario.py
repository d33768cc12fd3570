"""What the demo plays: which part of which trace, how much of it, and what it needs. Pure but for reading its own files."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import yaml

from e2e.history.openmetrics import MeanTokens, Service, Window
from e2e.history.past import Past
from e2e.history.trace import DAY_SECONDS, RateTrace, Step
from e2e.load.schedule import PlayPlan, Spacing, TokenRange
from warmfront_api.inferenceservice import InferenceService
from warmfront_forecaster.planning import demand, need
from warmfront_forecaster.planning.types import Capacity, DemandReading

HERE: Final = Path(__file__).resolve().parent
SERVICE_FILE: Final = HERE / "chat.yaml"
TRACE_FILE: Final = HERE / "trace" / "client13.csv"
TIME_COLUMN: Final = "second"
RATE_COLUMN: Final = "requests_per_second"

# What the simulator's chat template adds to a prompt: role marks and line ends.
CHAT_TEMPLATE_TOKENS: Final = 10

HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A trace with a jump, and when its parts become history and load. Trace times in seconds.

    History ends at `history_end_seconds`; between it and `play_start_seconds` the service starts and the forecaster
    learns (the trace rests at zero there, so nothing needs to be played).
    """

    manifest: dict[str, Any]  # the InferenceService, as a user applies it
    trace: RateTrace  # at the rate that is played
    history_end_seconds: float
    jump_seconds: float
    play_end_seconds: float
    prompt_words: TokenRange = field(default_factory=lambda: TokenRange(mean=190, spread=100))
    output: TokenRange = field(default_factory=lambda: TokenRange(mean=80, spread=40))
    seed: int = 13

    @cached_property
    def service(self) -> InferenceService:
        """The InferenceService; defaults are filled in as the API server would."""
        return InferenceService.model_validate(self.manifest)

    @property
    def tokens(self) -> MeanTokens:
        """Mean tokens of a request, as the gateway counts them."""
        return MeanTokens(prompt=self.prompt_words.mean + CHAT_TEMPLATE_TOKENS, output=self.output.mean)

    @property
    def capacity(self) -> Capacity:
        """What one replica does, as the InferenceService says."""
        said = self.service.spec.scaling.capacity
        return Capacity(
            prefill_tokens_per_second=said.prefill_tokens_per_second,
            decode_tokens_per_second=said.decode_tokens_per_second,
            target_utilization=said.target_utilization_percent / 100,
        )

    def past(self, *, now: float) -> Past:
        """The part that becomes history, moved so that it ends now (unix seconds), of a pod that no longer exists."""
        end, name, namespace = self.history_end_seconds, self.service.name, self.service.namespace
        labels = {"job": "pods", "namespace": namespace, "pod": f"{name}-before", "instance": "history:9090"}
        return Past(
            trace=self.trace,
            window=Window(start_seconds=self.trace.start_seconds, end_seconds=end, shift_seconds=now - end),
            service=Service(namespace=namespace, name=name, target_labels=labels),
            tokens=self.tokens,
        )

    def play(self, *, from_seconds: float) -> PlayPlan:
        """What is sent from a trace time on."""
        return PlayPlan(
            start_seconds=from_seconds,
            end_seconds=self.play_end_seconds,
            prompt=self.prompt_words,
            output=self.output,
            spacing=Spacing.POISSON,
            seed=self.seed,
        )

    def needed(self, *, from_seconds: float) -> dict[int, float]:
        """For each replica above those at rest: the trace time at which the played load first needs it."""
        first: dict[int, float] = {}
        for step in self.trace.steps(from_seconds, self.play_end_seconds):
            for replica in range(self.service.spec.scaling.min_replicas + 1, self.replicas_for(step) + 1):
                first.setdefault(replica, step.start_seconds)
        return first

    def replicas_for(self, step: Step) -> int:
        """Replicas that a step of the load needs, by the planner's own rule."""
        mean = self.tokens
        reading = DemandReading(arrivals_per_second=step.rate, prompt_tokens=mean.prompt, output_tokens=mean.output)
        return need(demand(reading, self.capacity) or 0.0, self.capacity)


def recorded() -> Scenario:
    """The demo: client 13 of a recorded trace rests at zero and jumps at 10:10 on each of ten days; day ten is played.

    The rate is scaled so that the step after the jump needs three of the sample's replicas. History ends nine
    minutes before the jump: set-up, the first pod's start-up and the first fit take four, and five are left to watch.
    """
    with TRACE_FILE.open(encoding="utf-8") as file:
        trace = RateTrace.from_csv(file, time_column=TIME_COLUMN, rate_column=RATE_COLUMN)
    jump = 10 * DAY_SECONDS + 10 * HOUR + 600
    return Scenario(
        manifest=read_manifest(SERVICE_FILE),
        trace=trace.scaled(RATE_AFTER_JUMP / trace.rate_at(jump)),
        history_end_seconds=jump - 540,
        jump_seconds=jump,
        play_end_seconds=jump + 360,
    )


# 1.9 replicas' worth: 3.9 requests/s x (200 / 8,000 + 80 / 174) s, and 1.9 / 0.75 makes three replicas.
RATE_AFTER_JUMP: Final = 3.9


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest of one resource."""
    parsed: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return parsed
