"""A budget: limits of spend per hour, UTC day, UTC month and in total, and thresholds of warnings."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

import msgspec

from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.lease import Lease


class Window(Enum):
    """The windows of a threshold."""

    HOUR = "per_hour"
    """The present committed rate."""
    DAY = "per_day"
    MONTH = "per_month"
    TOTAL = "total"


class Kind(Enum):
    """The subject of a budget."""

    ACCOUNT = "account"
    """All spend of gpubid."""
    MARKET = "market"
    WORKLOAD = "workload"


class Scope(msgspec.Struct, frozen=True):
    """The scope of a budget: everything, one market or one workload, by name."""

    kind: Kind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}" if self.name else self.kind.value

    @property
    def prefix(self) -> str:
        """The prefix of its limits' names; empty for the scope of everything."""
        return "" if self.kind is Kind.ACCOUNT else f"{self.kind.value}_"

    @property
    def place(self) -> str:
        """Its table in `agent.toml`."""
        return "limits" if self.kind is Kind.ACCOUNT else f"{self.kind.value}s.{self.name}.budget"

    def covers(self, lease: Lease) -> bool:
        """Return whether the cost of a lease counts in this scope."""
        if self.kind is Kind.ACCOUNT:
            return True
        return self.name == (lease.market if self.kind is Kind.MARKET else lease.slot.workload)


EVERYTHING = Scope(Kind.ACCOUNT)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """One amount for each window; None limits nothing."""

    per_hour: UsdPerHour | None = None
    per_day: Usd | None = None
    per_month: Usd | None = None
    total: Usd | None = None

    def amount(self, window: Window) -> Usd | None:
        """Return the threshold of a summing window, None for the rate."""
        if window is Window.DAY:
            return self.per_day
        if window is Window.MONTH:
            return self.per_month
        return self.total if window is Window.TOTAL else None


SUMS = (Window.DAY, Window.MONTH, Window.TOTAL)
"""The windows whose spend adds up."""


def end(window: Window, at: datetime) -> datetime | None:
    """Return when the UTC day or month of an instant ends and its sum begins again; None for other windows."""
    if window is Window.DAY:
        return day(at) + timedelta(days=1)
    if window is Window.MONTH:
        return (month(at) + timedelta(days=32)).replace(day=1)
    return None


def day(at: datetime) -> datetime:
    """Return when the UTC day of an instant began."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def month(at: datetime) -> datetime:
    """Return when the UTC month of an instant began."""
    return day(at).replace(day=1)


@dataclass(frozen=True, slots=True)
class Budget:
    """Past `hard` nothing is rented and running leases are paused; past `soft` a person is warned."""

    hard: Thresholds = Thresholds()
    soft: Thresholds = Thresholds()


def of_workload(name: str) -> Scope:
    """Return the scope of a workload."""
    return Scope(Kind.WORKLOAD, name)


def of_market(name: str) -> Scope:
    """Return the scope of a market."""
    return Scope(Kind.MARKET, name)
