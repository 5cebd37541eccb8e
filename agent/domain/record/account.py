"""Money and paid time of one lease on one UTC day. Every report of spend sums these lines."""

from dataclasses import dataclass
from datetime import date, datetime

from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import ZERO, Usd, UsdPerHour

VOLUME = "network-volume:"
"""Before a network volume's name: the lease id of its spend, of which no lease exists."""
HOUR = 3_600_000_000
"""Microseconds in an hour."""


@dataclass(frozen=True, slots=True)
class Line:
    """The cost of one lease on one UTC day, and its paid time by phase, in microseconds.

    `paused_disk` is the part of `disk` that was paid while the lease did not run. `opened_at` to `ended_at` is the
    lease's whole life. `ask` is the host's on-demand price at the rent. Charges from before the ledger began have no
    lease.
    """

    lease_id: str
    day: date
    workload: str
    market: str
    tenure: Tenure
    gpu_spend: Usd = ZERO
    disk: Usd = ZERO
    traffic: Usd = ZERO
    paused_disk: Usd = ZERO
    paid: int = 0
    loading: int = 0
    restoring: int = 0
    useful: int = 0
    lost: int = 0
    gpu: str = ""
    gpus: int = 0
    dlperf: float = 0.0
    opened_at: datetime | None = None
    ended_at: datetime | None = None
    ask: UsdPerHour | None = None

    @property
    def is_volume(self) -> bool:
        """Whether it is the cost of a network volume, in `disk`."""
        return self.lease_id.startswith(VOLUME)

    @property
    def amount(self) -> Usd:
        """All money of the line."""
        return self.gpu_spend + self.disk + self.traffic


@dataclass(frozen=True, slots=True)
class LostWork:
    """The time that one interruption wasted, in microseconds."""

    lease_id: str
    at: datetime
    cause: Cause
    lost: int
    is_measured: bool = False
    """Whether a guard measured it; if not, it follows from the workload's checkpoint interval."""
