"""A shadow's account: the paper figures of a strategy that spends nothing, beside the live one."""

from dataclasses import dataclass, replace
from datetime import datetime

from agent.domain.money import ZERO, Usd
from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class Counted:
    """Money, and paid time in microseconds, counted since a ledger or a shadow began."""

    spent: Usd = ZERO
    paid: int = 0
    useful: int = 0
    lost: int = 0

    def less(self, other: "Counted") -> "Counted":
        """Return the difference to `other`."""
        spent = self.spent - other.spent
        return Counted(spent, self.paid - other.paid, self.useful - other.useful, self.lost - other.lost)

    def owing(self, amount: Usd) -> "Counted":
        """Return the same with an amount added that is owed and not recorded yet."""
        return replace(self, spent=self.spent + amount)

    @property
    def per_useful_hour(self) -> float | None:
        """Dollars per useful hour; None without a useful hour."""
        return self.spent.dollars / (self.useful / 3.6e9) if self.useful > 0 else None


@dataclass(frozen=True, slots=True)
class ShadowAccount:
    """One strategy beside one workload, from `since` to `seen_at`; `live_before` are the live figures at its start."""

    workload: str
    strategy: str
    since: datetime
    seen_at: datetime
    counted: Counted
    live_before: Counted
    interruptions: int = 0
    starts: int = 0
    rents: int = 0
    position: bytes = b""


@dataclass(frozen=True, slots=True)
class ShadowDecision:
    """A decision that nobody carried out; `kind` is hold or the kind of its intent."""

    at: datetime
    strategy: str
    slot: Slot
    kind: str
    code: str
    sentence: str
    host_id: str = ""
