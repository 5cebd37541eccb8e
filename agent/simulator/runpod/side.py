"""This market as the server of all simulated markets sees it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agent.simulator.runpod import places, truth
from agent.simulator.runpod.http.api import RunpodApi
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.simulated_market import Ask, ServedMarket


class Side(ServedMarket):
    """A surface and its API."""

    def __init__(self, surface: Surface, api: RunpodApi) -> None:
        """Take both."""
        super().__init__(api, surface.world, surface.weather, surface.key)
        self._surface, self._world = surface, surface.world

    @property
    def hosts(self) -> int:
        """How many hosts it has."""
        return len(self._world.hosts)

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

    def add_volume(self, name: str, size_gb: int, is_wanted: Callable[[str], bool]) -> None:
        """Make a network volume in the data centre with most wanted GPUs."""
        if self._world.volumes.get(name) is None:
            self._world.volumes.create(name, size_gb, self._center(is_wanted), name)

    def _center(self, is_wanted: Callable[[str], bool]) -> str:
        gpus = Counter[str]()
        for host in self._world.hosts.values():
            if host.center_id is not None and is_wanted(host.gpu.name):
                gpus[host.center_id] += host.gpu_count
        # Among equals the first by name, so that the same configuration gives the same market.
        return min(gpus, key=lambda center: (-gpus[center], center), default=places.EUROPEAN)

    async def close(self) -> None:
        """Close the ports of containers."""
        self._surface.doors.close()
