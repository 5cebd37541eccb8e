"""What the server of simulated markets needs of each vendor's market, and the record that begins one.

A package registers its record in the entry-point group `gpubid.simulators`, under the name of the market in
`gpubid.markets`. Two groups, because the adapter and the simulated market share no code: neither knows the other.
"""

import collections
import dataclasses
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from agent.simulator.climate import Climate
from agent.simulator.http_wire import Answer, Asked
from agent.simulator.market_model import Charge
from agent.simulator.simulated_clock import Clock
from agent.simulator.weather import Weather

Answering = Callable[[Asked], Coroutine[Any, Any, Answer]]


@dataclasses.dataclass(frozen=True, slots=True)
class Beginning:
    """How a simulated market begins: at `start`, epoch seconds, by the rules of its climate.

    The same beginning gives the same market. `key` is the key that it takes. With `ids` its ids differ from those of
    every other beginning.
    """

    climate: Climate
    seed: int
    start: float
    clock: Clock
    key: str
    ids: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Ask:
    """What one instance costs on demand now, in dollars per hour with its disk; `gpu` is the vendor's name of it."""

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
    """What something cost on one UTC day: a moment of that day in epoch seconds, and dollars."""

    at: float
    dollars: float
    is_disk: bool = False
    """Whether it is the price of a disk, which a stopped instance goes on to cost."""


class SimulatedMarket(Protocol):
    """One vendor's market behind its HTTP API."""

    answer: Answering
    """Answers one request at the clock's present. It may be replaced, by what notes each call and passes it on."""

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
        """The answered calls: time, method, path, status; 0 stands for a dropped connection."""
        ...

    @property
    def weather(self) -> Weather | None:
        """Its faults, if it knows any."""
        ...

    def follow(self, now: float) -> None:
        """Let everything happen that is due until `now`."""
        ...

    def truth(self) -> Mapping[str, Any]:
        """Return its true state: `contracts` (id, label, created, ended) and `charged_total` in dollars at least."""
        ...

    def charges(self, since: float, until: float) -> Iterable[DayCharge]:
        """Return what was charged on the UTC days that touch the span, epoch seconds."""
        ...

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield what instances of so many GPUs with such a disk cost on demand, those that are free."""
        ...

    def add_volume(self, name: str, size_gb: int, is_wanted: Callable[[str], bool]) -> None:
        """Give the account a network volume of this id where most wanted GPUs are, unless it has one.

        `is_wanted` says of the vendor's name of a GPU whether the volume's renter takes it.
        """
        ...

    async def close(self) -> None:
        """Close what it opened."""
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
        """Return what was charged in a span."""
        ...


class PlainMarket:
    """What a market needs no methods for: it has no network volumes."""

    def add_volume(self, name: str, size_gb: int, is_wanted: Callable[[str], bool]) -> None:
        """Do nothing."""


class ServedMarket(PlainMarket):
    """What our own simulated markets share: a world, its weather and the API in front of both."""

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
        """Return what was charged in a span."""
        for charge in self._served.charges(since, until):
            yield DayCharge(charge.day, charge.amount, is_disk=charge.kind == "disk")

    @property
    def weather(self) -> Weather:
        """Its faults."""
        return self._weather


@dataclasses.dataclass(frozen=True, slots=True)
class SimulatorRecord:
    """The simulated market of a vendor, by the name of the market."""

    name: str
    begin: Callable[[Beginning], SimulatedMarket]
