"""Whether interruptible capacity could be had for a workload, as it was last seen."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.money import UsdPerHour


@dataclass(frozen=True, slots=True)
class Capacity:
    """Whether capacity fit within the price at `seen_at`, and since when it did or did not.

    `evidence` are the discounted log-likelihoods of the models of the pool, in the order of the hazards it was weighed
    by. `price` is what an hour of it cost when there last was any.
    """

    is_there: bool
    since: datetime
    seen_at: datetime
    evidence: tuple[float, ...] = ()
    price: UsdPerHour | None = None
