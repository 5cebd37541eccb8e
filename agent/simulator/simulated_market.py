"""The interface of each vendor's market for the server of simulated markets, and the parts that our own share."""

import collections
import dataclasses
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from agent.simulator.http_wire import Answer, Asked
from agent.simulator.market_model import Charge
from agent.simulator.weather import Weather

Answering = Callable[[Asked], Coroutine[Any, Any, Answer]]


@dataclasses.dataclass(frozen=True, slots=True)
class Ask:
    """The present on-demand price of an instance, in dollars per hour with its disk; `gpu` is the vendor's name."""

    gpu: str
    gpus: int
    dollars: float
    vram_mb: float
    is_verified: bool = False
    is_datacenter: bool = False
    reliability: float = 1.0
    inet_down_mbps: float = float("inf")
    disk_gb: float = float("inf")
    ends_at: float = float("inf")


class DayCharge(NamedTuple):
    """A cost on one UTC day: an instant of that day in epoch seconds, and dollars."""

    at: float
    dollars: float
    is_disk: bool = False
    """Whether it is the cost of a disk, which a stopped instance still has."""


class SimulatedMarket(Protocol):
    """One vendor's market behind its HTTP API."""

    @property
    def answer(self) -> Answering:
        """Answers one request at the clock's present. It may be replaced, by what notes each call and passes it on."""
        ...

    @answer.setter
    def answer(self, answering: Answering) -> None: ...

    @property
    def key(self) -> str:
        """The key that it takes."""
        ...

    @property
    def now(self) -> float:
        """Its time, epoch seconds."""
        ...

    @property
    def hosts(self) -> int:
        """How many hosts or pools it has."""
        ...

    @property
    def calls(self) -> Collection[tuple[float, str, str, int]]:
        """The answered calls: time, method, path, status; 0 is a dropped connection."""
        ...

    @property
    def weather(self) -> Weather | None:
        """Its faults, if it knows any."""
        ...

    def follow(self, now: float) -> None:
        """Let everything happen that is due until `now`."""
        ...

    def wake(self, now: float) -> None:
        """Let everything happen that is due until `now`, also in a market that nobody has called yet."""
        ...

    def truth(self) -> Mapping[str, Any]:
        """Return its true state: `contracts` (id, label, created, ended) and `charged_total` in dollars at least.

        A market that rations the rows of searches also tells how many it has returned: `search_rows`.
        """
        ...

    def charges(self, since: float, until: float) -> Iterable[DayCharge]:
        """Return the charges of the UTC days that the span touches, in epoch seconds."""
        ...

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield the on-demand prices of free instances with that number of GPUs and that disk."""
        ...

    def add_volume(self, name: str, size_gb: int, is_wanted: Callable[[str], bool]) -> None:
        """Give the account a network volume of this id where most wanted GPUs are, unless it has one.

        `is_wanted` says of the vendor's name of a GPU whether the volume's renter takes it.
        """
        ...

    def steer(self, method: str, path: str, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Answer a call of the control API that is about this market; None: it is not.

        Raises: BadRequestError, Refusal.
        """
        ...

    def only_reads(self, asked: Asked) -> bool:
        """Return whether a call changes nothing although it is no GET, so that a saved market need not repeat it."""
        ...

    async def settle(self) -> None:
        """Finish what a call of the control API has begun."""
        ...

    async def close(self) -> None:
        """Close its connections and ports."""
        ...


class Api(Protocol):
    """The HTTP API of one vendor's world."""

    calls: collections.deque[tuple[float, str, str, int]]

    async def answer(self, asked: Asked) -> Answer:
        """Answer one request."""
        ...


class World(Protocol):
    """One vendor's world."""

    @property
    def now(self) -> float:
        """Its time, epoch seconds."""
        ...

    def charges(self, since: float, until: float) -> Iterable[Charge]:
        """Return the charges in a span."""
        ...


class _Following(Protocol):
    def follow(self, now: float) -> None: ...


class PlainMarket:
    """A market without network volumes, and without controls of its own."""

    def wake(self: _Following, now: float) -> None:
        """Let everything happen that is due until `now`."""
        self.follow(now)

    def add_volume(self, name: str, size_gb: int, is_wanted: Callable[[str], bool]) -> None:
        """Do nothing."""

    def steer(self, method: str, path: str, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return None: no call is about this market."""
        del method, path, fields
        return None

    def only_reads(self, asked: Asked) -> bool:
        """Return False: any call but a GET may change something."""
        del asked
        return False

    async def settle(self) -> None:
        """Do nothing."""


class ServedMarket(PlainMarket):
    """The shared part of our own simulated markets: a world, its weather and the API in front of both."""

    def __init__(self, api: Api, world: World, weather: Weather, key: str) -> None:
        """Take them, and the key that the API takes."""
        self._api, self._served, self._weather, self._key = api, world, weather, key

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
        return self._key

    @property
    def now(self) -> float:
        """Its time, epoch seconds."""
        return self._served.now

    @property
    def calls(self) -> Collection[tuple[float, str, str, int]]:
        """The answered calls."""
        return self._api.calls

    def charges(self, since: float, until: float) -> Iterable[DayCharge]:
        """Return the charges in a span."""
        for charge in self._served.charges(since, until):
            yield DayCharge(charge.day, charge.amount, is_disk=charge.kind == "disk")

    @property
    def weather(self) -> Weather:
        """Its faults."""
        return self._weather
