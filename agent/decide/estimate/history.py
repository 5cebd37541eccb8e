"""Recorded prices -> the prices a job would meet, as equally likely cases.

For every hour of the history the least price of any host counts, since that is what is rented; a price stands until the
host shows another, at most a day. The hours are sorted and cut into cells of equal length; a case is a cell's mean.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from agent.domain.money import UsdPerHour
from agent.domain.price import PriceHour, PriceSample

CASES = 5
STANDS = timedelta(hours=24)
"""How long an unchanged price is believed. Assumed: prices are written down when they change, hosts come and go."""
_HOUR = timedelta(hours=1)


def least_asks(samples: Iterable[PriceSample], hours: Iterable[PriceHour], gpus: int) -> dict[datetime, UsdPerHour]:
    """Return the least on-demand price of every hour, for `gpus` GPUs together."""
    old = {hour.hour: hour.ask.least for hour in hours if hour.gpus == gpus and hour.ask is not None}
    return _merged(old, _least([(one.at, one.host_id, one.ask) for one in samples if one.gpus == gpus]))


def least_floors(samples: Iterable[PriceSample], hours: Iterable[PriceHour], gpus: int) -> dict[datetime, UsdPerHour]:
    """Return the least floor of every hour, for `gpus` GPUs together."""
    old = {hour.hour: hour.floor.least for hour in hours if hour.gpus == gpus and hour.floor is not None}
    return _merged(old, _least([(one.at, one.host_id, one.floor) for one in samples if one.gpus == gpus]))


def cases(hourly: Mapping[datetime, UsdPerHour]) -> tuple[UsdPerHour, ...]:
    """Return at most `CASES` equally likely prices; none without history."""
    rates = sorted(rate.micros for rate in hourly.values())
    count = min(CASES, len(rates))
    cells = [rates[len(rates) * number // count : len(rates) * (number + 1) // count] for number in range(count)]
    return tuple(UsdPerHour(round(sum(cell) / len(cell))) for cell in cells)


def _merged(old: dict[datetime, UsdPerHour], raw: dict[datetime, UsdPerHour]) -> dict[datetime, UsdPerHour]:
    return dict(sorted({**old, **raw}.items()))


def _least(changes: Sequence[tuple[datetime, str, UsdPerHour | None]]) -> dict[datetime, UsdPerHour]:
    if not changes:
        return {}
    ordered = sorted(changes, key=lambda change: (change[0], change[1]))
    standing: dict[str, tuple[datetime, UsdPerHour | None]] = {}
    found: dict[datetime, UsdPerHour] = {}
    hour, place = _hour_of(ordered[0][0]), 0
    while hour <= ordered[-1][0]:
        while place < len(ordered) and ordered[place][0] < hour + _HOUR:
            at, host, rate = ordered[place]
            standing[host] = (at, rate)
            place += 1
        fresh = [rate for at, rate in standing.values() if rate is not None and hour - at < STANDS]
        if fresh:
            found[hour] = min(fresh)
        hour += _HOUR
    return found


def _hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
