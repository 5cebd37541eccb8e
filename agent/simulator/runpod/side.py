"""This market as the server of all simulated markets sees it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agent.simulator.runpod import truth
from agent.simulator.runpod.http.api import RunpodApi
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.simulated_market import Answering, Ask
from agent.simulator.weather import Weather


class Side:
    """A surface and its API."""

    def __init__(self, surface: Surface, api: RunpodApi) -> None:
        """Take both."""
        self._surface, self._api, self._world = surface, api, surface.world

    @property
    def answer(self) -> Answering:
        """What answers its calls."""
        return self._api.answer

    @answer.setter
    def answer(self, answering: Answering) -> None:
        self._api.answer = answering  # type: ignore[method-assign, assignment]

    @property
    def key(self) -> str:
        """The key that it takes."""
        return self._surface.key

    @property
    def now(self) -> float:
        """Its time, epoch seconds."""
        return self._world.now

    @property
    def hosts(self) -> int:
        """How many hosts it has."""
        return len(self._world.hosts)

    @property
    def calls(self) -> Collection[tuple[float, str, str, int]]:
        """The answered calls."""
        return self._api.calls

    @property
    def weather(self) -> Weather:
        """Its faults."""
        return self._surface.weather

    def follow(self, now: float) -> None:
        """Move the market."""
        self._surface.advance_to(now)

    def truth(self) -> Mapping[str, Any]:
        """Return its true state."""
        return truth.as_json(self._world)

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield what the hosts with enough free GPUs cost on demand."""
        pods = self._world
        for host in pods.hosts.values():
            if pods.stock.free(host) >= gpus:
                is_secure = host.center_id is not None
                yield Ask(
                    gpu=host.gpu.name,
                    gpus=gpus,
                    dollars=pods.price(host.gpu, host.cloud) * gpus + pods.disk_price(disk_gb),
                    vram_mb=host.gpu.memory_gb * 1024,
                    is_verified=is_secure,
                    is_datacenter=is_secure,
                )

    async def close(self) -> None:
        """Close the ports of containers."""
        self._surface.doors.close()
