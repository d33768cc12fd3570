"""How a pod gets warm, or serves without, or never serves."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import ClientError, web

from tests.runtime.fakes import MODEL, Gateway, MakeGateway, hang, reply
from warmfront_api.workload import Warmup
from warmfront_runtime.errors import WarmupError
from warmfront_runtime.gateway.health import Probe
from warmfront_runtime.gateway.lifecycle import State
from warmfront_runtime.gateway.pod import Pod
from warmfront_runtime.warmup import run
from warmfront_runtime.warmup.supervisor import Supervisor

GENERATED = (200, {"choices": [{"text": "x"}], "usage": {"prompt_tokens": 5, "completion_tokens": 16}})


@dataclass
class ScriptedEngine:
    """Says what the test sets: its health, and its answer to a generation (an exception is raised)."""

    probe: Probe = Probe.UNREACHABLE
    answer: object = GENERATED
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[tuple[str, dict | None]] = field(default_factory=list)
    models: frozenset[str] = frozenset({MODEL, "adapter"})

    async def health(self) -> Probe:
        return self.probe

    async def call(self, _: str, path: str, payload: dict | None = None) -> tuple[int, object]:
        self.calls.append((path, payload))
        await self.gate.wait()
        answer = self.answer(path) if callable(self.answer) else self.answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def model_names(self) -> frozenset[str]:
        return self.models


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Scene:
    gateway: Gateway
    engine: ScriptedEngine
    clock: Clock
    supervisor: Supervisor

    @property
    def pod(self) -> Pod:
        return self.gateway.pod

    async def at(self, seconds: float, probe: Probe) -> State:
        """Tick once at `seconds` after the start, and let the warm-up run as far as it can."""
        self.clock.now = 1000 + seconds
        self.engine.probe = probe
        await self.supervisor.tick()
        for _ in range(30):
            await asyncio.sleep(0)
        return self.pod.lifecycle.state


@pytest.fixture
async def scene(make_gateway: MakeGateway, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "PAUSE_SECONDS", 0)
    clock, engine = Clock(), ScriptedEngine()
    gateway = await make_gateway(ready=False, clock=clock)
    warmup = Warmup(prompts=2, timeout_seconds=600)
    supervisor = Supervisor(pod=gateway.pod, engine=engine, model=MODEL, warmup=warmup)
    yield Scene(gateway, engine, clock, supervisor)
    supervisor._end_warmup()


async def readyz(gateway: Gateway) -> int:
    async with gateway.http.get(gateway.admin_url + "/readyz") as response:
        return response.status


async def test_a_pod_is_ready_when_its_generations_ran_and_each_phase_is_timed(scene: Scene):
    assert await scene.at(30, Probe.UNREACHABLE) is State.STARTING
    assert await scene.at(60, Probe.HEALTHY) is State.WARMING
    assert await readyz(scene.gateway) == 503
    assert scene.gateway.value("gateway_warm") == 0
    scene.clock.now = 1000 + 75
    scene.engine.gate.set()
    assert await scene.at(75, Probe.HEALTHY) is State.READY
    assert await readyz(scene.gateway) == 200
    assert scene.gateway.value("gateway_warm") == 1
    assert scene.gateway.value("cold_start_seconds", phase="engine") == 60
    assert scene.gateway.value("cold_start_seconds", phase="warmup") == 15
    prompts = [payload["prompt"] for path, payload in scene.engine.calls if path == "/v1/completions"]
    assert len(set(prompts)) == 2, "different prompts, or the second would come from the prefix cache"
    assert all(payload["model"] == MODEL and payload["max_tokens"] > 0 for _, payload in scene.engine.calls)
    assert scene.pod.served_models == {MODEL, "adapter"}


async def test_when_the_warm_up_takes_too_long_a_healthy_engine_serves_without_being_warm_and_may_get_warm_later(scene: Scene):
    await scene.at(60, Probe.HEALTHY)
    assert await scene.at(599, Probe.HEALTHY) is State.WARMING
    assert await scene.at(600, Probe.HEALTHY) is State.READY_NOT_WARM
    assert await readyz(scene.gateway) == 200
    assert scene.gateway.value("gateway_warm") == 0
    scene.engine.gate.set()
    assert await scene.at(700, Probe.HEALTHY) is State.READY
    assert scene.gateway.value("gateway_warm") == 1


@pytest.mark.parametrize("probe", [Probe.UNREACHABLE, Probe.UNHEALTHY, Probe.UNANSWERED])
async def test_an_engine_that_is_not_healthy_never_serves_however_late(scene: Scene, probe: Probe):
    for seconds in (1, 599, 601, 100_000):
        assert await scene.at(seconds, probe) is State.STARTING
    assert await readyz(scene.gateway) == 503


async def test_an_engine_that_falls_silent_in_its_warm_up_does_not_serve_by_time(scene: Scene):
    await scene.at(60, Probe.HEALTHY)
    assert await scene.at(601, Probe.UNANSWERED) is State.WARMING
    assert await scene.at(602, Probe.HEALTHY) is State.READY_NOT_WARM


@pytest.mark.parametrize(
    "failure",
    [(503, {"error": "overloaded"}), (200, {"usage": {"completion_tokens": 0}}), (200, None), ClientError("broken")],
    ids=["an error", "no tokens", "no JSON", "no connection"],
)
async def test_a_generation_that_fails_is_tried_again_until_it_completes(scene: Scene, failure: object):
    answers = iter([failure, failure])
    scene.engine.answer = lambda _: next(answers, GENERATED)
    scene.engine.gate.set()
    await scene.at(1, Probe.HEALTHY)
    assert await scene.at(2, Probe.HEALTHY) is State.READY
    assert len(scene.engine.calls) == 4


async def test_a_generation_that_never_ends_is_given_up_for_a_new_one(gateway: Gateway, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(run, "GENERATION_TIMEOUT_SECONDS", 0.05)
    answers = iter([hang, reply(GENERATED[1])])

    async def answer(request: web.Request) -> web.StreamResponse:
        return await next(answers)(request)

    gateway.engine.answer = answer
    async with asyncio.timeout(5):
        await run.warm_up(gateway.engine_client, model=MODEL, prompts=1)
    assert gateway.engine.aborted.is_set()


async def test_a_model_that_only_embeds_is_warmed_by_embeddings(scene: Scene):
    scene.engine.answer = lambda path: (200, {"data": []}) if path == "/v1/embeddings" else (404, {"error": {}})
    scene.engine.gate.set()
    await scene.at(1, Probe.HEALTHY)
    assert await scene.at(2, Probe.HEALTHY) is State.READY


async def test_a_model_that_does_neither_says_why(scene: Scene):
    scene.engine.answer = lambda _: (404, {"error": "no such model"})
    scene.engine.gate.set()
    with pytest.raises(WarmupError, match=r"404.*no such model"):
        await run.generate(scene.engine, model=MODEL, prompt="x")


async def test_an_engine_that_restarts_takes_the_pod_out_of_service_until_it_is_warm_again(scene: Scene):
    scene.engine.gate.set()
    await scene.at(60, Probe.HEALTHY)
    assert await scene.at(61, Probe.HEALTHY) is State.READY
    assert await scene.at(1000, Probe.UNREACHABLE) is State.STARTING
    assert await readyz(scene.gateway) == 503
    assert scene.gateway.value("gateway_warm") == 0
    scene.engine.gate.clear()
    assert await scene.at(1080, Probe.HEALTHY) is State.WARMING
    assert scene.gateway.value("cold_start_seconds", phase="engine") == 80
    scene.engine.gate.set()
    assert await scene.at(1081, Probe.HEALTHY) is State.READY


async def test_an_engine_lost_in_its_warm_up_begins_it_anew(scene: Scene):
    await scene.at(60, Probe.HEALTHY)
    await scene.at(61, Probe.UNREACHABLE)
    scene.engine.gate.set()
    assert await scene.at(62, Probe.UNREACHABLE) is State.STARTING, "the old warm-up has no say any more"
    assert await scene.at(70, Probe.HEALTHY) is State.READY or await scene.at(71, Probe.HEALTHY) is State.READY


async def test_a_busy_engine_keeps_the_pod_in_service_and_one_that_hangs_does_not(scene: Scene):
    scene.engine.gate.set()
    await scene.at(1, Probe.HEALTHY)
    assert await scene.at(10, Probe.UNANSWERED) is State.READY
    assert await scene.at(69, Probe.UNANSWERED) is State.READY
    assert await scene.at(70, Probe.UNANSWERED) is State.STARTING


async def test_a_bug_in_the_warm_up_is_not_hidden(scene: Scene):
    scene.engine.answer = ZeroDivisionError()
    scene.engine.gate.set()
    await scene.at(1, Probe.HEALTHY)
    with pytest.raises(ZeroDivisionError):
        await scene.at(2, Probe.HEALTHY)


async def test_generations_go_to_a_real_server_as_it_takes_them(gateway: Gateway):
    async def answer(request: web.Request) -> web.Response:
        if request.content_type != "application/json":  # as vLLM does
            return web.json_response({"error": {"message": "Unsupported Media Type"}}, status=400)
        return web.json_response(GENERATED[1])

    gateway.engine.answer = answer
    async with asyncio.timeout(5):
        await run.warm_up(gateway.engine_client, model=MODEL, prompts=3)
    assert [received.path for received in gateway.engine.received] == ["/v1/completions"] * 3


PROBES: dict[str, tuple[Callable[[Gateway], object], Probe]] = {
    "healthy": (lambda _: None, Probe.HEALTHY),
    "its core died": (lambda gateway: setattr(gateway.engine, "health_status", 503), Probe.UNHEALTHY),
}


@pytest.mark.parametrize("case", PROBES)
async def test_probes_of_a_real_server(gateway: Gateway, case: str):
    prepare, expected = PROBES[case]
    prepare(gateway)
    assert await gateway.engine_client.health() is expected


async def test_a_server_that_is_gone_is_unreachable(gateway: Gateway):
    await gateway.engine_server.close()
    assert await gateway.engine_client.health() is Probe.UNREACHABLE


async def test_a_server_that_says_nothing_is_unanswered(make_gateway: MakeGateway, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("warmfront_runtime.gateway.engine.HEALTH_TIMEOUT_SECONDS", 0.05)
    gateway = await make_gateway()
    never = asyncio.Event()
    gateway.engine.on_health = never.wait
    assert await gateway.engine_client.health() is Probe.UNANSWERED


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ({"data": [{"id": MODEL}, {"id": "adapter"}, {"id": 3}, "odd"]}, {MODEL, "adapter"}),
        ({"data": None}, set()),
        ([], set()),
    ],
)
async def test_the_engines_model_names_are_read_with_care(gateway: Gateway, answer: object, names: set[str]):
    gateway.engine.answer = reply(answer)
    assert await gateway.engine_client.model_names() == names
