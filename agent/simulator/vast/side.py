"""This market as the server of all simulated markets sees it."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent.simulator.simulated_market import Ask, ServedMarket
from agent.simulator.vast.http.api import VastApi
from agent.simulator.vast.http.surface import Surface


class Side(ServedMarket):
    """A surface and its API."""

    def __init__(self, surface: Surface, api: VastApi) -> None:
        """Take both."""
        super().__init__(api, surface.world, surface.weather, surface.gate.key)
        self._surface, self._world = surface, surface.world

    @property
    def hosts(self) -> int:
        """How many hosts it has."""
        return len(self._world.hosts)

    def follow(self, now: float) -> None:
        """Move the market and its deliveries."""
        self.weather.advance_to(now)
        self._surface.deliveries.attend(now)

    def truth(self) -> Mapping[str, Any]:
        """Return its true state."""
        return self._world.truth()

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield what the rentable slices cost on demand."""
        for slice_ in self._world.listed():
            host = slice_.host
            if slice_.num_gpus == gpus and self._world.is_rentable(slice_):
                yield Ask(
                    gpu=host.gpu.name,
                    gpus=gpus,
                    dollars=self._world.ask(slice_) + host.storage_price * disk_gb / 720,
                    vram_mb=host.gpu.vram_mb,
                    is_verified=host.verification == "verified",
                    is_datacenter=host.is_datacenter is True,
                    reliability=host.reliability,
                    inet_down_mbps=host.inet_down,
                    disk_gb=host.disk_gb,
                    ends_at=host.end_time,
                )

    async def close(self) -> None:
        """Close the ports of containers and what delivers webhooks."""
        await self._surface.deliveries.close()
        self._surface.records.doors.close()
