"""This market as the server of all simulated markets sees it."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent.simulator.mithril import truth
from agent.simulator.mithril.http.api import MithrilApi
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.simulated_market import Ask, ServedMarket


class Side(ServedMarket):
    """A surface and its API."""

    def __init__(self, surface: Surface, api: MithrilApi) -> None:
        """Take both."""
        super().__init__(api, surface.world, surface.weather, surface.key)
        self._surface, self._world = surface, surface.world

    @property
    def hosts(self) -> int:
        """How many pools it has."""
        return len(self._world.pools)

    def follow(self, now: float) -> None:
        """Move the market."""
        self._surface.follow(now)

    def truth(self) -> Mapping[str, Any]:
        """Return its true state."""
        return truth.as_json(self._world)

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield nothing: it sells nothing on demand."""
        del gpus, disk_gb
        yield from ()

    async def close(self) -> None:
        """Close the ports of containers."""
        self._surface.doors.close()
