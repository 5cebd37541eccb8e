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
    """Whether capacity fit within the price, and since when."""

    is_there: bool
    """Whether there was any at `seen_at`."""
    since: datetime
    """Since when that is so."""
    seen_at: datetime
    """When it was looked for last."""
    evidence: tuple[float, ...] = ()
    """Discounted log-likelihoods of the models of the pool, in the order of the hazards it was weighed by."""
    price: UsdPerHour | None = None
    """What an hour of it cost when there last was any."""
    market: str = ""
    """Where it was looked for."""
    pool: str = ""
    """What was looked for, by name."""
    is_begun: bool = False
    """Whether the beginning of this spell was seen."""
    version: str = ""
    """Which hazards the evidence was weighed by."""
    there: Counts = Counts()
    """The spells with capacity, over all of our record."""
    away: Counts = Counts()
    """The spells without, over all of our record."""
    looks: int = 1
    """How often it was looked for."""
