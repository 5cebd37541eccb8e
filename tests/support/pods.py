"""The simulated RunPod behind real HTTP for tests: a quiet world, a clock that only tests move, and a plain client."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from agent.simulator.climate import Climate
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.runpod.climate_table import Runpod
from agent.simulator.runpod.http.rate_windows import Limits
from agent.simulator.runpod.world import World
from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast.http import call_gate
from agent.simulator.vast.world import World as VastWorld
from tests.support.market import START, STILL, Answer
from tests.support.steered import Simulator

OF_THE_PAST = STILL.having(Runpod(mode="historical"))
"""A still market that sells pods at a bid, as RunPod did until September 2026."""
A4000 = "NVIDIA RTX A4000"


@dataclasses.dataclass(slots=True)
class Pods:
    """A running simulator, and a session that talks to its RunPod over TCP."""

    simulator: Simulator
    session: aiohttp.ClientSession

    @property
    def world(self) -> World:
        return self.simulator.pods

    async def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = call_gate.DEFAULT_KEY, **query: str
    ) -> Answer:
        """Send one request."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        sent: dict[str, Any] = {"data": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
        url = self.simulator.runpod_url + path
        async with self.session.request(method, url, headers=headers, params=query, **sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def ask(self, query: str, variables: Any = None) -> Any:
        """Send a GraphQL query, which must succeed. Return the data."""
        answer = await self.call("POST", "/graphql", {"query": query, "variables": variables})
        assert answer.status == 200, answer.raw
        assert "errors" not in answer.body, answer.raw
        return answer.body["data"]

    async def control(self, method: str, path: str, body: Any = None) -> Answer:
        """Send one request to the control API."""
        url = self.simulator.control_url + path
        async with self.session.request(method, url, **({"json": body} if body is not None else {})) as response:
            return Answer(response.status, response.headers, await response.read())

    async def advance(self, seconds: float) -> None:
        answer = await self.control("POST", "/advance", {"seconds": seconds})
        assert answer.status == 200, answer.raw

    async def weather(self, fault: str, **fields: Any) -> int:
        answer = await self.control("POST", "/weather", {"fault": fault, "market": "runpod", **fields})
        assert answer.status == 200, answer.raw
        return int(answer.body["id"])

    async def truth(self) -> dict[str, Any]:
        return dict((await self.control("GET", "/truth")).body["runpod"])

    async def create(self, **fields: Any) -> Answer:
        """Make a pod with a body of REST v2."""
        body = {"name": "exp1", "image": "ubuntu:22.04", "gpu": {"id": A4000, "count": 1}, "disk": 20, **fields}
        return await self.call("POST", "/v2/pods", body)

    async def created(self, **fields: Any) -> str:
        """Make a pod, which must succeed. Return its id."""
        answer = await self.create(**fields)
        assert answer.status == 201, answer.raw
        return str(answer.body["id"])

    async def show(self, pod_id: str) -> dict[str, Any]:
        answer = await self.call("GET", f"/v2/pods/{pod_id}")
        assert answer.status == 200, answer.raw
        return dict(answer.body)

    async def act(self, pod_id: str, action: str) -> Answer:
        return await self.call("POST", f"/v2/pods/{pod_id}/action", {"action": action})

    async def running(self, pod_id: str) -> dict[str, Any]:
        """Wait until a pod runs. Return it."""
        for _ in range(600):
            if (pod := await self.show(pod_id))["status"] == "RUNNING":
                return pod
            await self.advance(10.0)
        raise AssertionError(pod)


@contextlib.asynccontextmanager
async def running_pods(
    climate: Climate = OF_THE_PAST,
    *,
    seed: int = 7,
    credit: float | None = None,
    limits: Limits | None = None,
    registry: Callable[[ScaledClock], ProcessRegistry] | None = None,
) -> AsyncIterator[Pods]:
    """Serve both markets while the block runs."""
    clock = ScaledClock(START, speed=0.0)
    vast = VastWorld(climate, seed=seed, start=START, hosts=5)
    world = World(climate, seed=seed, start=START, credit=credit)
    processes = registry(clock) if registry else None
    async with (
        Simulator(vast, clock, seed=seed, pods=world, limits=limits, processes=processes) as simulator,
        aiohttp.ClientSession() as session,
    ):
        yield Pods(simulator, session)
