"""Recorded prices -> the prices a job would meet, as equally likely cases.

In every hour of the history the prices of the few cheapest hosts count, with equal weight. The rented host depends on
more than the price, and after an interruption it is the next one. A price is valid until the host shows another, for a
day at most. All prices are sorted and cut into cells of equal length. A case is a cell's mean.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from agent.domain.market.market_rules import PricePaid
from agent.domain.market.price import PriceHour, PriceSample
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Lease

CASES = 5

CHEAPEST = 2
"""How many hosts of an hour count. Chosen on ten rehearsed days: with two the days cost 0.85 of the expectation and
none passed the 90th percentile; with one 0.97, and four passed it (tests/soak/estimates.py)."""

STANDS = timedelta(hours=24)
"""How long an unchanged price is believed. Assumed: prices are recorded only when they change, and hosts come and
go."""
ECHO = timedelta(minutes=90)
"""How long after a lease its bid may still be shown as the floor. In records it was 10 to 20 minutes, and up to four
times that after a bid was lowered."""
_HOUR = timedelta(hours=1)
_Change = tuple[datetime, str, UsdPerHour | None]

Hourly = Mapping[datetime, tuple[UsdPerHour, ...]]
"""The lowest prices of each hour, lowest first."""


def asks(samples: Iterable[PriceSample], hours: Iterable[PriceHour], gpus: int) -> Hourly:
    """Return the lowest on-demand prices of every hour, for `gpus` GPUs together; one price for a rolled-up hour."""
    old = {hour.hour: (hour.ask.least,) for hour in hours if hour.gpus == gpus and hour.ask is not None}
    raw = _least([(one.at, one.host_id, one.ask) for one in samples if one.gpus == gpus])
    return dict(sorted({**old, **raw}.items()))


def floors(samples: Iterable[PriceSample], leases: Iterable[Lease], gpus: int, paid: PricePaid) -> Hourly:
    """Return the lowest floors of every hour, for `gpus` GPUs together, on hosts where no lease of ours bids.

    On such a host a search shows our own bid as the floor, except where prices are listed. Rolled-up hours do not name
    hosts, so they are left out.
    """
    leases = () if paid is PricePaid.LISTED else leases
    ours: dict[str, list[tuple[datetime, datetime | None]]] = {}
    for lease in leases:
        ours.setdefault(lease.host_id, []).append((lease.opened_at, lease.ended_at and lease.ended_at + ECHO))
    # The search before the rent counts for its hour. After that the slice is ours and no longer for sale.
    changes: list[_Change] = [(since + _HOUR, host, None) for host, spans in ours.items() for since, _ in spans]
    changes += [
        (one.at, one.host_id, one.floor)
        for one in samples
        if one.gpus == gpus and not _is_within(one.at, ours.get(one.host_id, ()))
    ]
    return _least(changes)


def cases(hourly: Hourly) -> tuple[UsdPerHour, ...]:
    """Return at most `CASES` equally likely prices; empty without history."""
    rates = sorted(rate.micros for prices in hourly.values() for rate in prices)
    count = min(CASES, len(rates))
    cells = [rates[len(rates) * number // count : len(rates) * (number + 1) // count] for number in range(count)]
    return tuple(UsdPerHour(round(sum(cell) / len(cell))) for cell in cells)


def _is_within(at: datetime, spans: Iterable[tuple[datetime, datetime | None]]) -> bool:
    return any(since < at and (until is None or at < until) for since, until in spans)


def _least(changes: Sequence[_Change]) -> Hourly:
    if not changes:
        return {}
    ordered = sorted(changes, key=lambda change: (change[0], change[1]))
    standing: dict[str, tuple[datetime, UsdPerHour | None]] = {}
    found: dict[datetime, tuple[UsdPerHour, ...]] = {}
    hour, place = _hour_of(ordered[0][0]), 0
    while hour <= ordered[-1][0]:
        while place < len(ordered) and ordered[place][0] < hour + _HOUR:
            at, host, rate = ordered[place]
            standing[host] = (at, rate)
            place += 1
        fresh = [rate for at, rate in standing.values() if rate is not None and hour - at < STANDS]
        if fresh:
            found[hour] = tuple(sorted(fresh)[:CHEAPEST])
        hour += _HOUR
    return found


def _hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
