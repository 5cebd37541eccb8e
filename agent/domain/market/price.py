"""Prices over time: of a host at one instant, of a model in one hour, and those that an instance paid."""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from agent.domain.market.gpu import GpuModel
from agent.domain.money import UsdPerHour


@dataclass(frozen=True, slots=True)
class PriceSample:
    """Ask and floor of one slice of a host, for all its GPUs together; None if the market did not report it."""

    at: datetime
    market: str
    host_id: str
    gpu: GpuModel
    gpus: int
    ask: UsdPerHour | None
    floor: UsdPerHour | None


@dataclass(frozen=True, slots=True)
class PriceSpan:
    """The lowest, the mean and the highest of `samples` prices."""

    samples: int
    least: UsdPerHour
    mean: UsdPerHour
    most: UsdPerHour


@dataclass(frozen=True, slots=True)
class PriceHour:
    """One hour of a model on a market. The mean is over seen changes, not over time."""

    hour: datetime
    market: str
    gpu: GpuModel
    gpus: int
    ask: PriceSpan | None
    floor: PriceSpan | None


class PaidPeriod(msgspec.Struct, frozen=True):
    """A price that an instance paid from `start` until `end`, in UTC; None: it goes on."""

    rate: UsdPerHour
    start: datetime
    end: datetime | None = None


class PaidBill(msgspec.Struct, frozen=True):
    """What an instance paid by its market's own bill. Between its periods, the oldest first, it paid nothing."""

    periods: tuple[PaidPeriod, ...]
    until: datetime
    """Up to when it is complete, in UTC."""
    since: datetime | None = None
    """From when on it is complete; None: from the beginning."""
