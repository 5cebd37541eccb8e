"""The time in which a service wanted warm slots, and the part of it with too few of them."""

from datetime import datetime

import msgspec

KEY = "warm_time/"
"""Before a workload's name: its key among the ledger's single facts."""
MICROS = 1_000_000
_HOUR = 3600 * MICROS


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """One stretch of hours, counted from 1970: microseconds in which slots were wanted, and with too few warm."""

    number: int
    wanted: int
    short: int


class WarmTime(msgspec.Struct, frozen=True):
    """The record of a service up to `seen_at`, in stretches, the oldest first. `is_short` is the state at that look.

    It begins when enough slots are warm for the first time.
    """

    workload: str
    seen_at: datetime
    is_short: bool = False
    stretches: tuple[Stretch, ...] = ()

    @property
    def wanted_hours(self) -> float:
        """The hours in which slots were wanted."""
        return sum(each.wanted for each in self.stretches) / _HOUR

    @property
    def short_hours(self) -> float:
        """The hours of these with too few warm slots."""
        return sum(each.short for each in self.stretches) / _HOUR

    @property
    def availability(self) -> float | None:
        """The share of the wanted time with enough warm slots; None before any."""
        wanted = sum(each.wanted for each in self.stretches)
        return 1.0 - sum(each.short for each in self.stretches) / wanted if wanted else None


def encoded(time: WarmTime) -> str:
    """Return a record as a text of the ledger."""
    return msgspec.json.encode(time).decode()


def decoded(text: str) -> WarmTime:
    """Return the record in a text of the ledger."""
    return msgspec.json.decode(text, type=WarmTime)
