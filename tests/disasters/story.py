"""A story as a value: what the world is made of, and everything that goes wrong or is ordered in it, one entry each.

Each entry can be removed by itself; the others stay what they are. That is what lets a failing story be shrunk.
"""

import dataclasses

CALM_FROM = 112
"""From this cycle on nothing more goes wrong."""


@dataclasses.dataclass(frozen=True, slots=True)
class Strike:
    """Something wrong with one exchange or one commit: the `number`th of its `place` in the seed, and `times` in a row.

    `market` is "ledger" for a commit. `amount` is what the fault takes: seconds, a factor, which row.
    """

    market: str
    place: str
    number: int
    fault: str
    times: int = 1
    amount: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Deed:
    """Something that happens before a cycle: a verb of an operator, an edited file, fate. `pick` chooses among many."""

    cycle: int
    name: str
    pick: int = 0
    amount: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """One workload, in few words."""

    name: str
    kind: str
    strategy: str
    slots: int
    markets: tuple[str, ...] = ()
    is_read: bool = False
    """Whether its log tells that it is ready."""
    ends_after: float = 0.0
    """Seconds of running after which a batch is done; 0 for never."""


@dataclasses.dataclass(frozen=True, slots=True)
class Story:
    """Everything about one seed."""

    seed: int
    markets: tuple[str, ...]
    works: tuple[Work, ...]
    poll: float
    demand: float
    """How many rivals come, as a share of a real market's."""
    instances: int
    """The cap on instances; 0 for none."""
    strikes: tuple[Strike, ...] = ()
    deeds: tuple[Deed, ...] = ()
