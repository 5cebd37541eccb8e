"""The cost of network volumes, by the operator's price: each counts from the first pass that knew it and its price.

Invariants:
1. A volume costs once, however many workloads name it. They pay equal parts, which add up to the whole.
2. A volume that leaves the configuration costs up to the first pass that missed it, also while nothing ran: unknown
   time counts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from msgspec.structs import replace

from agent.decide.accounting import meter
from agent.domain import money
from agent.domain.money import FREE, Usd, UsdPerHour
from agent.domain.record.metered_volume import MeteredVolume
from agent.domain.work.workload import Workload

METER_EVERY = timedelta(minutes=5)
"""How long the cost of an unchanged volume may be owed before it is recorded."""
Volumes = Mapping[str, MeteredVolume]


@dataclass(frozen=True, slots=True)
class Share:
    """One workload's part of a volume's cost on one UTC day."""

    volume: str
    workload: str
    market: str
    day: date
    amount: Usd


@dataclass(frozen=True, slots=True)
class Burden:
    """One workload's part of a volume now: its rate, and its cost since the last metering, which was at `since`."""

    workload: str
    market: str
    rate: UsdPerHour
    since: datetime
    owed: Usd


def turned(known: Volumes, workloads: Iterable[Workload], now: datetime) -> list[MeteredVolume]:
    """Return the volumes to record at `now`: they are new or changed, or their cost has been owed for long."""
    present = _present(workloads, now)
    gone = {name: MeteredVolume(name, now) for name, one in known.items() if name not in present and one.workloads}
    return [
        replace(volume, until=max(now, known[name].until) if name in known else now)
        for name, volume in sorted({**present, **gone}.items())
        if name not in known or _is_due(known[name], volume)
    ]


def shares(volume: MeteredVolume, until: datetime) -> Iterator[Share]:
    """Yield each workload's part of the cost since the last metering, day by day."""
    for start, end in meter.days(volume.until, until):
        whole = volume.rate.over((end - start).total_seconds()).micros
        for workload, micros in zip(volume.workloads, _parts(whole, len(volume.workloads)), strict=True):
            yield Share(volume.name, workload, volume.market, start.date(), Usd(micros))


def burdens(volumes: Volumes, now: datetime) -> list[Burden]:
    """Return each workload's part of each volume: its rate, and what it owes."""
    return [burden for volume in volumes.values() for burden in _burdens(volume, now)]


def rate(volumes: Volumes, now: datetime) -> UsdPerHour:
    """Return the rate of all volumes."""
    return money.total_rate(burden.rate for burden in burdens(volumes, now))


def outstanding(volumes: Volumes, now: datetime) -> Usd:
    """Return the cost of all volumes since their last metering."""
    return money.total(burden.owed for burden in burdens(volumes, now))


def _burdens(volume: MeteredVolume, now: datetime) -> Iterator[Burden]:
    count = len(volume.workloads)
    owed = volume.rate.over(max(0.0, (now - volume.until).total_seconds())).micros
    parts = zip(volume.workloads, _parts(volume.rate.micros, count), _parts(owed, count), strict=True)
    for workload, rate, part in parts:
        yield Burden(workload, volume.market, UsdPerHour(rate), volume.until, Usd(part))


def _present(workloads: Iterable[Workload], now: datetime) -> dict[str, MeteredVolume]:
    """Return the volumes with a price that the workloads name; of two prices the higher one counts."""
    users: dict[str, list[Workload]] = {}
    for work in workloads:
        if work.requirements.network_volume and work.network_volume_rate > FREE:
            users.setdefault(work.requirements.network_volume, []).append(work)
    return {
        name: MeteredVolume(
            name,
            now,
            max(work.network_volume_rate for work in mine),
            tuple(sorted(work.name for work in mine)),
            min((market for work in mine for market in work.markets if len(work.markets) == 1), default=""),
        )
        for name, mine in users.items()
    }


def _is_due(known: MeteredVolume, volume: MeteredVolume) -> bool:
    return volume.until - known.until >= METER_EVERY or replace(volume, until=known.until) != known


def _parts(micros: int, count: int) -> list[int]:
    """Return a whole in equal parts; the first ones have the rest."""
    if not count:
        return []
    base, rest = divmod(micros, count)
    return [base + (place < rest) for place in range(count)]
