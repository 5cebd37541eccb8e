"""Whether interruptible capacity was available for a workload when last seen, and the evidence before.

What a workload asks of its markets is a pool: workloads that ask the same of the same share what is learned of it.
"""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.money import UsdPerHour


@dataclass(frozen=True, slots=True)
class Counts:
    """Ends of spells, and hours watched, by bins of age: of available capacity, or of none."""

    ends: tuple[float, ...] = ()
    hours: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Capacity:
    """Whether capacity fit within the price at `seen_at`, and since when.

    `evidence` are the discounted log-likelihoods of the models of the pool, in the order of the hazards it was weighed
    by, which `version` names. `price` is what an hour of it cost when there last was any. `is_begun` tells whether the
    beginning of this spell was seen; `there` and `away` count the spells that were, over all of our record.
    """

    is_there: bool
    since: datetime
    seen_at: datetime
    evidence: tuple[float, ...] = ()
    price: UsdPerHour | None = None
    market: str = ""
    pool: str = ""
    is_begun: bool = False
    version: str = ""
    there: Counts = Counts()
    away: Counts = Counts()
    looks: int = 1
