"""The picture of one run under several strategies, tick by tick."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent.domain.market.tenure import Tenure
from agent.lab.bench.comparison import Case


@dataclass(frozen=True, slots=True)
class Lane:
    """One strategy's run: the tenure of each tick, and the hours of work done at the beginning of each and at the end.

    `moves` are the ticks in which it went to another pool than before.
    """

    strategy: str
    tenures: tuple[Tenure | None, ...]
    done: tuple[float, ...]
    dollars: float
    moves: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Band:
    """A pool, and whether it had interruptible capacity in each tick."""

    pool: str
    is_up: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A case under several strategies: hours of a tick, the pools, hours of work and allowed."""

    case: str
    gap: float
    bands: tuple[Band, ...]
    work: float
    allowed: float
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Shelf:
    """One strategy's instances at each look, how many were warm, dollars, and the share of looks with enough warm."""

    strategy: str
    interruptible: tuple[int, ...]
    on_demand: tuple[int, ...]
    warm: tuple[int, ...]
    dollars: float
    availability: float


@dataclass(frozen=True, slots=True)
class Kept:
    """Slots to keep warm under several strategies: hours between looks, the pools, and the number of slots.

    The first `unjudged` looks are not judged.
    """

    case: str
    gap: float
    bands: tuple[Band, ...]
    slots: int
    unjudged: int
    shelves: tuple[Shelf, ...]


@dataclass(frozen=True, slots=True)
class Quote:
    """Prices of a lease from an hour on, $/h: our bid, the lowest bid that would have run, and the ask.

    On demand, `bid` is the agreed price. `lowest` is None while no bid would have run.
    """

    hour: float
    bid: float
    lowest: float | None
    ask: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a lease's bill within a span of hours: dollars of one kind, and useful DLPerf-hours."""

    kind: str
    start: float
    end: float
    dollars: float
    work: float


@dataclass(frozen=True, slots=True)
class Leased:
    """One lease, in hours since the day began: its host, its card, its price changes, and its bill.

    `lost` has the instants and the causes of its interruptions.
    """

    host: str
    card: str
    tenure: Tenure
    start: float
    end: float
    quotes: tuple[Quote, ...]
    parts: tuple[Part, ...]
    lost: tuple[tuple[float, str], ...]

    def dollars(self, *kinds: str) -> float:
        """Return the dollars for these kinds, or for all kinds."""
        return sum(part.dollars for part in self.parts if not kinds or part.kind in kinds)

    def hours(self, kind: str) -> float:
        """Return the hours of a kind."""
        return sum(part.end - part.start for part in self.parts if part.kind == kind)

    @property
    def work(self) -> float:
        """Useful DLPerf-hours."""
        return sum(part.work for part in self.parts)


@dataclass(frozen=True, slots=True)
class Bidder:
    """One strategy's leases, the oldest first."""

    strategy: str
    leases: tuple[Leased, ...]

    @property
    def dollars(self) -> float:
        """The bill."""
        return sum(lease.dollars() for lease in self.leases)

    @property
    def work(self) -> float:
        """Useful DLPerf-hours."""
        return sum(lease.work for lease in self.leases)


@dataclass(frozen=True, slots=True)
class Auction:
    """A day of bidding under several strategies: its hours, its market, and the kinds of cost.

    `bound` has points of (dollars, DLPerf-hours): the most work that these dollars could have bought. The figure of
    merit is dollars per `per` DLPerf-hours.
    """

    case: str
    market: str
    hours: float
    per: float
    kinds: tuple[str, ...]
    bidders: tuple[Bidder, ...]
    bound: tuple[tuple[float, float], ...]


@runtime_checkable
class HasTimeline(Protocol):
    """A problem whose runs have pictures tick by tick."""

    def timeline(self, strategies: Sequence[str], case: Case) -> Timeline | Kept | Auction:
        """Return the picture of a case."""
        ...
