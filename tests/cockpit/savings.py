"""The savings of a month, read from the ledger a second time: useful hours at the cheapest ask of their time.

A host's ask counts from its sample until the next one, at most for a day; of the hours in which a lease was open, the
mean of the cheapest asks for as many cards of its model is its price, or its own host's ask where no hour has one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

from agent.domain.market.price import PriceSample
from agent.domain.money import MICROS
from agent.domain.record.account import HOUR, Line

AN_HOUR = timedelta(hours=1)
COUNTS_FOR = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Asks:
    """The samples of every host, the oldest first, as they were at some instant."""

    by_card: Mapping[tuple[str, str, int], Sequence[PriceSample]]

    @classmethod
    def up_to(cls, at: datetime, samples: Sequence[PriceSample]) -> "Asks":
        """Return those of these samples that were taken by an instant."""
        found: dict[tuple[str, str, int], list[PriceSample]] = {}
        for each in samples:
            if each.at <= at:
                found.setdefault((each.market, each.gpu, each.gpus), []).append(each)
        return cls(found)

    def cheapest(self, line: Line, hour: datetime) -> int | None:
        """Return the lowest ask within an hour for the cards of a line."""
        last: dict[str, PriceSample] = {}
        for each in self.by_card.get((line.market, line.gpu, line.gpus), ()):
            if each.at < hour + AN_HOUR:
                last[each.host_id] = each
        asks = [each.ask.micros for each in last.values() if each.ask and _hour(each.at) + COUNTS_FOR > hour]
        return min(asks, default=None)

    def price(self, line: Line, now: datetime) -> float | None:
        """Return the micro-dollars an hour that a line is compared with."""
        found = [ask for hour in _hours(line, now) if (ask := self.cheapest(line, hour)) is not None]
        if found:
            return sum(found) / len(found)
        return line.ask.micros if line.ask is not None else None


def saved(lines: Sequence[Line], asks: Asks, now: datetime) -> dict[str, Any]:
    """Return the figures of the feed's savings, but for their two dates."""
    prices = [asks.price(line, now) for line in lines]
    priced = [(line, price) for line, price in zip(lines, prices, strict=True) if price is not None]
    bare = [line for line, price in zip(lines, prices, strict=True) if price is None]
    spent = sum(line.amount.micros for line, _ in priced)
    compared = sum(round(line.useful * price / HOUR) for line, price in priced)
    return {
        "saved_dollars": (compared - spent) / MICROS if priced else None,
        "share": 1 - spent / compared if compared else None,
        "spent_dollars": spent / MICROS,
        "compared_dollars": compared / MICROS if priced else None,
        "unpriced_dollars": sum(line.amount.micros for line in bare) / MICROS,
        "unpriced": sorted({f"{line.gpus}x {line.gpu}" for line in bare}),
    }


def card(shown: Mapping[str, Any]) -> tuple[str, str]:
    """Return the large and the small line of the page's card for the feed's savings."""
    large = "–" if shown["saved_dollars"] is None else _dollars(shown["saved_dollars"])  # noqa: RUF001
    if shown["share"] is not None:
        large += f" {shown['share'] * 100:.0f} %"
    parts = []
    if shown["compared_dollars"] is not None:
        parts.append(f"{_dollars(shown['spent_dollars'])} against {_dollars(shown['compared_dollars'])} on demand")
    if shown["unpriced"]:
        more = f" and {len(shown['unpriced']) - 3} more" if len(shown["unpriced"]) > 3 else ""
        names = ", ".join(shown["unpriced"][:3])
        parts.append(f"no on-demand price for {names}{more} ({_dollars(shown['unpriced_dollars'])})")
    return large, "; ".join(parts)


def _dollars(amount: float) -> str:
    return f"-${-amount:.2f}" if round(amount, 2) < 0 else f"${abs(amount):.2f}"


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _hours(line: Line, now: datetime) -> Iterator[datetime]:
    """Yield the hours of a line's day in which its lease was open, up to now."""
    midnight = datetime.combine(line.day, time(), UTC)
    hour = max(midnight, _hour(line.opened_at or midnight))
    end = min(midnight + timedelta(days=1), line.ended_at or midnight + timedelta(days=1))
    while hour < end and hour <= now:
        yield hour
        hour += AN_HOUR
