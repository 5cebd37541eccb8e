"""What became of one run under several strategies, tick by tick."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent.domain.tenure import Tenure
from agent.lab.bench import Case


@dataclass(frozen=True, slots=True)
class Lane:
    """One strategy's run: the tenure of each tick, hours of work done at the beginning of each and at the end.

    `moves` are the ticks in which it went to another pool than the one before.
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
    """What one strategy held at each look, how much was warm, dollars, and the share of looks with enough warm."""

    strategy: str
    interruptible: tuple[int, ...]
    on_demand: tuple[int, ...]
    warm: tuple[int, ...]
    dollars: float
    availability: float


@dataclass(frozen=True, slots=True)
class Kept:
    """Slots to be kept warm, under several strategies: hours between looks, the pools, and how many are asked for.

    The first `unjudged` looks count for nobody.
    """

    case: str
    gap: float
    bands: tuple[Band, ...]
    slots: int
    unjudged: int
    shelves: tuple[Shelf, ...]


@runtime_checkable
class Told(Protocol):
    """A problem whose runs can be told tick by tick."""

    def timeline(self, strategies: Sequence[str], case: Case) -> Timeline | Kept:
        """Return what became of a case."""
        ...
