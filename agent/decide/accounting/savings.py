"""The cost of the same useful hours elsewhere: on demand on the same market at that time, or at a baseline.

The price at a time is the cheapest ask of the same model and number of GPUs that the price history knew then, each
host's last one within a day; where it knew none, the ask of the lease's own host. Only the GPUs of useful hours are
compared: storage and traffic, which an on-demand lease pays too, count against us alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.domain.market.price import PriceHour, PriceSample
from agent.domain.record.account import HOUR, Line

KNOWN_FOR = timedelta(hours=24)
"""A host that was not seen for longer may have left the market."""
_HOUR = timedelta(hours=1)

Price = Callable[[Line], float | None]
"""Micro-dollars an hour of all GPUs of a line's lease, None if not known."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What was spent, and what the useful hours would have cost; money in micro-dollars, times in microseconds.

    `spent`, `compared` and `useful` are of the leases alone whose card has a price to compare with; `unpriced` and
    `unknown` are the spend and the useful time of the others.
    """

    spent: int = 0
    compared: int = 0
    useful: int = 0
    unknown: int = 0
    unpriced: int = 0
    is_priced: bool = False
    """Whether any card has a price."""

    def plus(self, other: "Saving") -> "Saving":
        """Return the sum of both."""
        return Saving(
            self.spent + other.spent,
            self.compared + other.compared,
            self.useful + other.useful,
            self.unknown + other.unknown,
            self.unpriced + other.unpriced,
            self.is_priced or other.is_priced,
        )

    @property
    def saved(self) -> int | None:
        """The saved micro-dollars, negative where we paid more; None without a price to compare with."""
        return self.compared - self.spent if self.is_priced else None

    @property
    def ratio(self) -> float | None:
        """The saved share; None without anything to compare."""
        return 1 - self.spent / self.compared if self.compared else None


def grouped(lines: Iterable[Line], key: Callable[[Line], str], price: Price) -> dict[str, Saving]:
    """Return savings by a key."""
    found: dict[str, Saving] = {}
    for line in lines:
        found[key(line)] = found.get(key(line), Saving()).plus(of_line(line, price(line)))
    return dict(sorted(found.items()))


def total(savings: Iterable[Saving]) -> Saving:
    """Return all savings together."""
    whole = Saving()
    for one in savings:
        whole = whole.plus(one)
    return whole


def of_line(line: Line, price: float | None) -> Saving:
    """Return one line against a price; spend without useful time counts too, but not without a price."""
    if price is None:
        return Saving(unknown=line.useful, unpriced=line.amount.micros)
    return Saving(line.amount.micros, round(line.useful * price / HOUR), line.useful, is_priced=True)


class History:
    """The cheapest ask of each hour, by market, model and number of GPUs."""

    def __init__(self, samples: Sequence[PriceSample], hours: Sequence[PriceHour], now: datetime) -> None:
        self._known: dict[tuple[str, str, int], dict[datetime, int]] = {}
        for hour in hours:
            if hour.ask is not None:
                slots = self._known.setdefault((hour.market, hour.gpu, hour.gpus), {})
                slots[hour.hour] = hour.ask.least.micros
        by_key: dict[tuple[str, str, int], list[PriceSample]] = {}
        for sample in samples:
            by_key.setdefault((sample.market, sample.gpu, sample.gpus), []).append(sample)
        for key, mine in by_key.items():
            self._known.setdefault(key, {}).update(_by_hour(sorted(mine, key=lambda one: one.at), now))

    def price(self, line: Line) -> float | None:
        """Return the mean over the hours of a line's day in which its lease was open, or its own host's ask."""
        known = self._known.get((line.market, line.gpu, line.gpus), {})
        found = [known[hour] for hour in _hours(line) if hour in known]
        if found:
            return sum(found) / len(found)
        return float(line.ask.micros) if line.ask is not None else None


def _hours(line: Line) -> Iterable[datetime]:
    midnight = datetime(line.day.year, line.day.month, line.day.day, tzinfo=UTC)
    start = max(midnight, (line.opened_at or midnight).replace(minute=0, second=0, microsecond=0))
    end = min(midnight + timedelta(days=1), line.ended_at or midnight + timedelta(days=1))
    while start < end:
        yield start
        start += _HOUR


def _by_hour(samples: Sequence[PriceSample], now: datetime) -> Mapping[datetime, int]:
    """Return the cheapest last ask of any host at the end of each hour, from the first sample to now."""
    found: dict[datetime, int] = {}
    last: dict[str, PriceSample] = {}
    hour = samples[0].at.replace(minute=0, second=0, microsecond=0)
    left = list(reversed(samples))
    while hour <= now and (left or last):
        while left and left[-1].at < hour + _HOUR:
            sample = left.pop()
            last[sample.host_id] = sample
        last = {host: one for host, one in last.items() if one.at >= hour + _HOUR - KNOWN_FOR}
        asks = [one.ask.micros for one in last.values() if one.ask is not None]
        if asks:
            found[hour] = min(asks)
        hour += _HOUR
    return found
