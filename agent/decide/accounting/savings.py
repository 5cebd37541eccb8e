"""The cost of the same useful hours elsewhere: on demand on the same market at that time, or at a baseline.

The price at a time is the cheapest ask of the same model and number of GPUs. The price history has it, from each host's
last ask within a day. If the history has none, it is the ask of the lease's own host. Only the GPUs of useful hours are
compared. Storage and traffic, which an on-demand lease pays too, count only against us.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.domain.market.price import PriceHour
from agent.domain.record.account import HOUR, Line

KNOWN_FOR = timedelta(hours=24)
"""How long an ask counts: a host that was not seen for longer may have left the market."""
_HOUR = timedelta(hours=1)
_KNOWN_HOURS = KNOWN_FOR // _HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Card = tuple[str, str, int]
"""Market, model and number of GPUs."""

Price = Callable[[Line], float | None]
"""A function from a line to micro-dollars an hour for all GPUs of its lease, None if unknown."""


@dataclass(frozen=True, slots=True)
class Saving:
    """The spend, and the cost of the useful hours elsewhere; money in micro-dollars, times in microseconds.

    `spent`, `compared` and `useful` are only of leases whose card has a price to compare with. `unpriced` and `unknown`
    are the spend and the useful time of the others.
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
        """The saved micro-dollars, negative if we paid more; None without a price to compare with."""
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
    """Return the saving of one line at a price. Spend without useful time counts too, but not without a price."""
    if price is None:
        return Saving(unknown=line.useful, unpriced=line.amount.micros)
    return Saving(line.amount.micros, round(line.useful * price / HOUR), line.useful, is_priced=True)


class History:
    """The cheapest ask of each hour, by market, model and number of GPUs. It keeps hours, not samples."""

    def __init__(self, hours: Iterable[PriceHour], now: datetime) -> None:
        """Begin with rolled-up hours; hours after `now` stay unknown."""
        self._rolled: dict[_Card, dict[int, int]] = defaultdict(dict)
        for hour in hours:
            if hour.ask is not None:
                self._rolled[hour.market, hour.gpu, hour.gpus][_hour_of(hour.hour)] = hour.ask.least.micros
        self._seen: dict[_Card, dict[int, int]] = defaultdict(dict)
        self._end = _hour_of(now) + 1
        self._slice: tuple[str, str, int] | None = None
        self._last: dict[str, tuple[int, int | None]] = {}

    def see(self, market: str, host_id: str, gpus: int, gpu: str, hour: int, ask: int | None) -> None:
        """Add one ask of a host: hours since the epoch, micro-dollars an hour, None if unknown.

        The asks of one host and number of GPUs must come one after another, oldest first.
        """
        if (market, host_id, gpus) != self._slice:
            self.finish()
            self._slice = (market, host_id, gpus)
        if gpu in self._last:
            self._hold(gpu, hour)
        self._last[gpu] = (hour, ask)

    def finish(self) -> None:
        """Count the last ask of the last host for as long as an ask counts."""
        for gpu in self._last:
            self._hold(gpu, self._end)
        self._last = {}

    def _hold(self, gpu: str, until: int) -> None:
        """Count the last ask of a model until the hour `until`, for a day at most."""
        hour, ask = self._last[gpu]
        if ask is None or self._slice is None:
            return
        market, _, gpus = self._slice
        known = self._seen[market, gpu, gpus]
        for each in range(hour, min(until, hour + _KNOWN_HOURS, self._end)):
            if ask < known.get(each, ask + 1):
                known[each] = ask

    def price(self, line: Line) -> float | None:
        """Return the mean over the hours of a line's day in which its lease was open, or its own host's ask."""
        card = (line.market, line.gpu, line.gpus)
        seen, rolled = self._seen.get(card, {}), self._rolled.get(card, {})
        asks = [seen.get(hour, rolled.get(hour)) for hour in map(_hour_of, _hours(line))]
        known = [ask for ask in asks if ask is not None]
        if known:
            return sum(known) / len(known)
        return float(line.ask.micros) if line.ask is not None else None


def _hour_of(at: datetime) -> int:
    return (at - _EPOCH) // _HOUR


def _hours(line: Line) -> Iterable[datetime]:
    midnight = datetime(line.day.year, line.day.month, line.day.day, tzinfo=UTC)
    start = max(midnight, (line.opened_at or midnight).replace(minute=0, second=0, microsecond=0))
    end = min(midnight + timedelta(days=1), line.ended_at or midnight + timedelta(days=1))
    while start < end:
        yield start
        start += _HOUR
