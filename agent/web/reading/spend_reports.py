"""Reports of spend and savings from a ledger, for the verbs and for the daemon's socket."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from agent.baselines import baseline_loading, catalogue
from agent.decide.accounting import accounts, meter, savings, volume_metering
from agent.domain import money
from agent.domain.market import host
from agent.domain.market.gpu import GpuModel
from agent.domain.market.price import PriceHour
from agent.domain.record import work_done
from agent.domain.record.account import Line
from agent.domain.record.lease import Lease
from agent.domain.record.work_done import WorkDone
from agent.domain.work.workload import Workload
from agent.ledger.reader import Reader
from agent.web.reading import spend_json as shown

MOST_LINES = 20_000
"""The most lines (lease, day and tenure) that one report reads: a year of fifty slots. A report of so many took 0.9 s
of processor time and 22 MB, savings with 400,000 prices 1.8 s and 21 MB (`make bench`)."""
MOST_HOURS = 400_000
"""The most hourly rows of one model that a comparison reads: ten years of one market and four numbers of GPUs."""
CAUSE = "cause"
WORKLOAD = "workload"
Units = Mapping[str, str]
NO_UNITS: Units = {}
GROUPS = (*accounts.KEYS, CAUSE)


class ReportError(Exception):
    """There is no such report. The text says what to ask instead."""


@dataclass(frozen=True, slots=True)
class ReportScope:
    """The scope of a report: the key of its rows, and the UTC days from `since` up to but not including `until`."""

    by: str
    since: date | None = None
    until: date | None = None


async def spend(reader: Reader, scope: ReportScope, now: datetime, units: Units = NO_UNITS) -> Mapping[str, Any]:
    """Return spend and its wasted part, with totals, and the cost of open leases and volumes since the last metering.

    By workload it has dollars per unit, for all days: a guard's number counts from the beginning of the work.

    Raises: ReportError: no report is grouped by `scope.by`.
    """
    _refuse_unknown(scope, GROUPS)
    scope, cut = await _bounded(reader, scope)
    lines, leases, volumes = await reader.lines_and_payers(scope.since, scope.until)
    lost_work = await reader.lost_work(_midnight(scope.since), _midnight(scope.until))
    is_whole = scope.since is None and scope.until is None
    done = await _done(reader, units) if scope.by == WORKLOAD and is_whole else {}
    is_cut = bool(units) and scope.by == WORKLOAD and not is_whole
    more = _since_metering(leases, volumes, scope, now) | {"units_cut": is_cut}

    def computed() -> Mapping[str, Any]:
        sums = accounts.grouped(scope.by, lines, lost_work)
        rows = [shown.spent(key, one, done.get(key)) for key, one in sums.items()]
        total = shown.spent("all", accounts.total(sums.values()))
        return shown.report(scope.by, rows, total, **shown.measured(lost_work), **cut, **more)

    return await asyncio.to_thread(computed)


async def saved(reader: Reader, scope: ReportScope, baseline: str | None, now: datetime) -> Mapping[str, Any]:
    """Return useful hours against the on-demand price of their time, or the price of a cloud.

    Cards without such a price are named, and their cost is compared with nothing.

    Raises: ReportError: no report is grouped by `scope.by`, or the cloud is unknown.
    """
    if scope.by == CAUSE:
        raise ReportError("--by cause: the cost of an interruption has no price elsewhere; try `gpubid spend`")
    _refuse_unknown(scope, accounts.KEYS)
    scope, cut = await _bounded(reader, scope)
    lines, leases, _ = await reader.lines_and_payers(scope.since, scope.until)
    # The same hours elsewhere would need a volume too.
    lines = [line for line in lines if not line.is_volume]
    price, cited = await _prices(reader, lines, baseline, now)
    more = {"against": baseline or "on_demand", "cited": cited, **cut, **_since_metering(leases, {}, scope, now)}

    def computed() -> Mapping[str, Any]:
        sums = savings.grouped(lines, accounts.KEYS[scope.by], price)
        rows = [shown.saved(key, one) for key, one in sums.items()]
        whole = shown.saved("all", savings.total(sums.values()))
        return shown.report(scope.by, rows, whole, unpriced=_unpriced(lines, price), **more)

    return await asyncio.to_thread(computed)


async def _bounded(reader: Reader, scope: ReportScope) -> tuple[ReportScope, dict[str, Any]]:
    """Return the request within the limit of lines, and the day before which it is cut, if it is cut."""
    first = await reader.first_day_within(MOST_LINES, scope.since, scope.until)
    cut = {"cut_before": None if first is None else first.isoformat(), "most_lines": MOST_LINES}
    return (scope if first is None else replace(scope, since=first)), cut


async def _done(reader: Reader, units: Units) -> Mapping[str, WorkDone]:
    numbers = await reader.last_numbers() if units else []
    return {name: work_done.of_workload(name, unit, numbers) for name, unit in units.items()}


def _unpriced(lines: Sequence[Line], price: savings.Price) -> list[str]:
    return sorted({f"{line.gpus}x {line.gpu}" for line in lines if price(line) is None})


def _since_metering(
    leases: Sequence[Lease], volumes: volume_metering.Volumes, scope: ReportScope, now: datetime
) -> dict[str, Any]:
    """Return the instant of a report, and the cost of open leases and of volumes since the last metering."""
    is_open = scope.until is None or scope.until > now.date()
    owed = meter.outstanding(leases, now) + volume_metering.outstanding(volumes, now) if is_open else money.ZERO
    return {"as_of": now.isoformat(), "unmetered_dollars": owed.dollars}


def _refuse_unknown(scope: ReportScope, known: Sequence[str] | Mapping[str, object]) -> None:
    if scope.by not in known:
        raise ReportError(f"--by: no report is grouped by that; write one of {', '.join(known)}")


async def _prices(
    reader: Reader, lines: Sequence[Line], cloud: str | None, now: datetime
) -> tuple[savings.Price, list[str]]:
    """Return the price of each line, with the sources: of its time, or of a cloud, as offered or published."""
    if cloud is None:
        return (await _at_the_time(reader, lines, now) if lines else lambda _: None), []
    seen = await _at_cloud(reader, cloud, lines, now) if lines else lambda _: None
    live = await asyncio.to_thread(lambda: {line: price for line in lines if (price := seen(line)) is not None})
    published, cited = _published(cloud, [line for line in lines if line not in live], is_seen=bool(live))
    cards = sorted({f"{line.gpus}x {line.gpu}" for line in live})
    shown_live = [f"{card}: what the server's offers asked at {cloud} at that time" for card in cards]
    return (lambda line: live.get(line) or published(line)), [*shown_live, *cited]


async def _at_the_time(reader: Reader, lines: Sequence[Line], now: datetime) -> savings.Price:
    """Return the cheapest ask of each time. Only the history of rented models and days is read."""
    models, since, until = _bounds(lines)
    hours: list[PriceHour] = []
    for model in models:
        hours += await reader.price_hours(gpu=model, since=since, until=until, limit=MOST_HOURS)
    known = await asyncio.to_thread(savings.History, hours, now)
    await reader.each_ask(models, since, until, known.see)
    known.finish()
    return known.price


async def _at_cloud(reader: Reader, cloud: str, lines: Sequence[Line], now: datetime) -> savings.Price:
    """Return the cheapest ask of a cloud's pools at each time. Rolled-up hours name no cloud, so they are left out."""
    models, since, until = _bounds(lines)
    known = savings.History((), now)

    def see(market: str, host_id: str, gpus: int, gpu: str, hour: int, ask: int | None) -> None:
        if host.is_pool_of(host_id, cloud):
            known.see(cloud, f"{market}/{host_id}", gpus, gpu, hour, ask)

    await reader.each_ask(models, since, until, see)
    known.finish()
    return lambda line: known.price(replace(line, market=cloud, ask=None))


def _bounds(lines: Sequence[Line]) -> tuple[list[GpuModel], datetime, datetime]:
    """Return the rented models, and the times between which their asks matter."""
    days = [line.day for line in lines]
    since, until = _start_of(min(days)) - savings.KNOWN_FOR, _start_of(max(days)) + timedelta(days=1)
    return sorted({GpuModel(line.gpu) for line in lines if line.gpu}), since, until


def _published(cloud: str, lines: Sequence[Line], *, is_seen: bool) -> tuple[savings.Price, list[str]]:
    """Return the published price of a cloud for each line, with the source of each figure."""
    known = baseline_loading.load()
    if cloud not in known.clouds and not is_seen:
        raise ReportError(f"--baseline: no price of {cloud} is known; write one of {', '.join(known.clouds)}")
    quotes: dict[tuple[str, int], float] = {}
    cited: set[str] = set()
    for line in lines:
        if not line.gpu or (line.gpu, line.gpus) in quotes:
            continue
        try:
            quote = known.cheapest(cloud, line.gpu).quote(line.gpus)
        except catalogue.UnknownBaseline:
            continue
        quotes[line.gpu, line.gpus] = float(quote.least.micros)
        cited.add(f"{line.gpus}x {line.gpu}: {quote.least}, {quote.cited}")
    return lambda line: quotes.get((line.gpu, line.gpus)), sorted(cited)


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else _start_of(day)


def _start_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def units_of(workloads: Iterable[Workload]) -> Units:
    """Return the unit of each workload that names one."""
    return {work.name: work.unit for work in workloads if work.unit}


async def answer(
    reader: Reader, route: str, query: Mapping[str, str], now: datetime, units: Units = NO_UNITS
) -> Mapping[str, Any]:
    """Return the report of a request to /spend or /savings: `by`, and optionally `since`, `until`, `baseline`.

    `units` has the unit of each workload that names one.

    Raises: ReportError: there is no such report.
    """
    try:
        since, until = (date.fromisoformat(query[name]) if name in query else None for name in ("since", "until"))
    except ValueError:
        raise ReportError("since and until are days such as 2026-11-21") from None
    scope = ReportScope(query.get("by", "day"), since, until)
    if route == "/savings":
        return await saved(reader, scope, query.get("baseline"), now)
    return await spend(reader, scope, now, units)
