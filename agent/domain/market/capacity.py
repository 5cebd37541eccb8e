"""Whether interruptible capacity was available for a workload when last seen, and the evidence before.

The requirements of a workload on its markets are a pool. Workloads with equal requirements and markets share its
evidence.
"""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.money import UsdPerHour


@dataclass(frozen=True, slots=True)
class Counts:
    """Ends of spells and watched hours, by bins of age, for spells with capacity or for spells without."""

    ends: tuple[float, ...] = ()
    hours: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Capacity:
    """Whether capacity was there within the price, and since when."""

    is_there: bool
    """Whether there was capacity at `seen_at`."""
    since: datetime
    """When the present spell, with or without capacity, began."""
    seen_at: datetime
    """The time of the last look."""
    evidence: tuple[float, ...] = ()
    """Discounted log-likelihoods of the pool's models, in the order of the hazards that weighed it."""
    price: UsdPerHour | None = None
    """The hourly price when there last was capacity."""
    market: str = ""
    """The market or markets of the looks."""
    pool: str = ""
    """The name of the pool."""
    is_begun: bool = False
    """Whether the beginning of this spell was seen."""
    version: str = ""
    """The digest of the hazards that weighed the evidence."""
    there: Counts = Counts()
    """The spells with capacity, over our whole record."""
    away: Counts = Counts()
    """The spells without capacity, over our whole record."""
    looks: int = 1
    """The number of looks."""
