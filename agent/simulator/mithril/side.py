"""This market as the server of all simulated markets sees it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agent.simulator.mithril import truth
from agent.simulator.mithril.http.api import MithrilApi
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.simulated_market import Answering, Ask
from agent.simulator.weather import Weather


class Side:
    """A surface and its API."""

    def __init__(self, surface: Surface, api: MithrilApi) -> None:
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
        """How many pools it has."""
        return len(self._world.pools)

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
