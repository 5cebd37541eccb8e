"""The inputs of an estimate: the job, the ledger's prices and record, the strategies, and the baselines."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent.baselines.catalogue import Catalogue
from agent.config import job_table as jobs
from agent.config import value_kinds
from agent.decide.estimate import market_options, option, past_runs
from agent.decide.estimate.job import Job, Reruns, by_odds
from agent.decide.pricing import host_record, measured_checkpoints
from agent.decide.pricing.measured_checkpoints import Measured
from agent.decide.pricing.worth import value_frontier
from agent.decide.strategy import Tuned
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostRecord
from agent.domain.market.market_rules import ASSUMED
from agent.domain.market.price import PriceSample
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import CheckpointPlace, Workload
from agent.ledger import storage
from agent.ledger.reader import Reader, open_reader
from agent.ledger.storage_port import Storage
from agent.markets import registered_markets

ROWS = 100_000
"""The most price rows to read for one model and market."""
MEASURED = {"took_seconds": "takes", "restore_seconds": "restore_seconds", "checkpoint_bytes": "size_gb"}
"""The guards' figures that replace a workload's own figures, with the keys that they replace."""
_MOST_RESTORE_SECONDS = 86_400.0
_MOST_DEADLINE = timedelta(days=365)
"""The longest time of a job file; a later deadline is as far away."""
_GIGABYTE = 1e9
_WHOLLY_KNOWN = frozenset({"ondemand", "patient"})


@dataclass(frozen=True, slots=True)
class Found:
    """Every option of one model, the cheapest first, and those that cannot be estimated."""

    gpu: GpuModel
    options: tuple[option.Estimate, ...]
    missing: tuple[market_options.Missing, ...]
    frontier: tuple[value_frontier.Step, ...] = ()
    """Useful hours against dollars a day, over the options of the own markets."""


async def measured(ledger: Path | Storage, work: Workload, now: datetime) -> Mapping[str, Measured]:
    """Return the guards' figures of a workload's checkpoints, by the names in `MEASURED`; none without a ledger.

    As with prices, a figure from hosts of fewer than three owners is left out.

    Raises:
        LedgerError: there is a ledger, and it cannot be read.
    """
    if work.guard is None or await asyncio.to_thread(storage.of(ledger).is_missing):
        return {}
    reader = await open_reader(ledger)
    try:
        known = await reader.recollection(now)
    finally:
        await reader.close()
    hosts = (record for market in known.hosts.values() for record in market.values())
    owners = measured_checkpoints.owners_of(hosts, known.leases)
    figures = measured_checkpoints.of_figures(known.guard_figures.values(), work, owners)
    return {name: one for name, one in figures.items() if name in MEASURED and one.is_believed and one.figure > 0}


def used(table: jobs.JobTable, figures: Mapping[str, Measured]) -> dict[str, Measured]:
    """Return the measured figures that the estimate uses. A job file and the command line outrank them."""
    keys, said = _in_keys(figures), table.checkpoint
    return {name: one for name, one in figures.items() if getattr(said, MEASURED[name]) == keys[MEASURED[name]]}


def _in_keys(figures: Mapping[str, Measured]) -> dict[str, Any]:
    """Return measured figures as keys of a job's checkpoint table."""
    read: dict[str, Callable[[float], Any]] = {
        "took_seconds": lambda figure: timedelta(seconds=figure),
        "restore_seconds": lambda figure: min(figure, _MOST_RESTORE_SECONDS),
        "checkpoint_bytes": lambda figure: figure / _GIGABYTE,
    }
    return {MEASURED[name]: read[name](one.figure) for name, one in figures.items()}


def of_workload(work: Workload, now: datetime, figures: Mapping[str, Measured]) -> dict[str, Any]:
    """Return a workload's job as the keys of a job file, with the measured figures of its checkpoints.

    The deadline becomes the time left from `now`, or from `not_before`.
    """
    wants, checkpoint = work.requirements, work.checkpoint
    said: dict[str, Any] = {
        "gpus": wants.gpus,
        "image_gb": work.image_gb,
        "dataset_gb": work.dataset_gb,
        "disk_gb": work.disk_gb,
        "max_price": work.max_price.dollars,
        "checkpoint": {
            "interval": checkpoint.interval,
            "restore_seconds": checkpoint.restore.total_seconds(),
            "size_gb": checkpoint.size_gb,
            "at": checkpoint.place.value,
            **({"takes": checkpoint.takes} if checkpoint.takes else {}),
            **_in_keys(figures),
        },
    }
    if work.max_price_by_gpu:
        said["max_price_by_gpu"] = {model: price.dollars for model, price in work.max_price_by_gpu}
    if work.network_volume_rate > money.FREE:
        said["network_volume_per_month"] = work.network_volume_rate.dollars * market_options.HOURS_A_MONTH
    if work.value_per_hour is not None:
        said["value_per_hour"] = work.value_per_hour.dollars
    if work.value_share is not None:
        said["value"] = f"{work.value_share:.6g} x on_demand"
    optional: dict[str, Any] = {"reliability": wants.min_reliability, "inet_down": wants.min_inet_down_mbps}
    if work.deadline is not None:
        begins = max(now, work.not_before or now)
        optional["deadline"] = min(max(work.deadline.by - begins, timedelta(seconds=1)), _MOST_DEADLINE)
        # Hours on another GPU than the requested one do not count: its speed is not measured.
        is_ours = work.deadline.reference_gpu in {None, *wants.gpu_models}
        optional["hours"] = work.deadline.hours if is_ours else None
        optional["units"] = (work.deadline.total or None) if is_ours and work.unit else None
    optional["unit"] = work.unit or None
    said |= {key: value for key, value in optional.items() if value is not None}
    return said | ({"gpu": list(wants.gpu_models)} if wants.gpu_models else {})


async def find(
    table: jobs.JobTable,
    markets: Sequence[str],
    ledger: Path | Storage | None,
    tuned: Mapping[str, Tuned],
    baselines: Catalogue,
    now: datetime,
    asked: Sequence[PriceSample] = (),
) -> list[Found]:
    """Return every option of every model that the job names. `asked` are prices that the ledger may not have yet.

    Raises:
        LedgerError: there is a ledger, and it cannot be read.
    """
    is_there = ledger is not None and not await asyncio.to_thread(storage.of(ledger).is_missing)
    reader = await open_reader(ledger) if ledger is not None and is_there else None
    try:
        known = _Known(reader, asked)
        return [await _of_model(table, gpu.model(name), markets, known, tuned, baselines, now) for name in table.gpu]
    finally:
        if reader is not None:
            await reader.close()


@dataclass(frozen=True, slots=True)
class _Known:
    """Where prices come from: the ledger, if there is one, and what markets were just asked."""

    reader: Reader | None
    asked: Sequence[PriceSample]


async def _of_model(
    table: jobs.JobTable,
    model: GpuModel,
    markets: Sequence[str],
    known: _Known,
    tuned: Mapping[str, Tuned],
    baselines: Catalogue,
    now: datetime,
) -> Found:
    job = job_of(table, model)
    found: list[option.Estimate | market_options.Missing] = []
    worths: list[money.UsdPerHour] = []
    for market in markets:
        place = await _place(table, model, market, known, now)
        worths += [] if place.worth is None else [place.worth]
        found += market_options.weigh(job, place, [_bidder(one) for _, one in sorted(tuned.items())])
    # The cheapest market's on-demand price is what an hour would cost.
    frontier = value_frontier.of_ways(_ways(job, found), min(worths, default=None))
    found += [option.of_baseline(job, figure) for figure in baselines.find(model)]
    options = [one for one in found if isinstance(one, option.Estimate)]
    options.sort(key=lambda one: (one.dollars is None, one.dollars_least if one.dollars is None else one.dollars))
    return Found(
        model, tuple(options), tuple(one for one in found if isinstance(one, market_options.Missing)), frontier
    )


def _ways(job: Job, found: Sequence[option.Estimate | market_options.Missing]) -> Iterator[value_frontier.Way]:
    """Yield a day of each option: its part of the job's useful hours, and of the dollars."""
    for one in found:
        if isinstance(one, option.Estimate) and one.dollars is not None and one.hours:
            days = one.hours / value_frontier.HOURS_A_DAY
            tenure = "on demand" if one.tenure is Tenure.ON_DEMAND else "bid"
            yield value_frontier.Way(f"{one.name} ({tenure})", job.work / days, one.dollars / days)


def _worth(table: jobs.JobTable, asks: Sequence[money.UsdPerHour]) -> money.UsdPerHour | None:
    """Return what an hour of the job is worth, in dollars or by a market's mean ask; None if that is not known."""
    if table.value_per_hour is not None:
        return money.per_hour(table.value_per_hour)
    if table.value is None or not asks:
        return None
    mean = money.UsdPerHour(sum(ask.micros for ask in asks) // len(asks))
    return mean.scaled(value_kinds.share_of_on_demand(table.value))


def job_of(table: jobs.JobTable, model: GpuModel) -> Job:
    """Return the job on one GPU model, as the arithmetic takes it."""
    checkpoint = table.checkpoint
    ends = table.reruns
    reruns = Reruns(ends[0], ends[-1], ends[0] if ends[0] == ends[-1] else None)
    return Job(
        gpu=model,
        gpus=table.gpus,
        work=table.hours,
        interval=jobs.hours(checkpoint.interval),
        write=jobs.hours(checkpoint.takes),
        restore=checkpoint.restore_seconds / 3600,
        place=CheckpointPlace(checkpoint.at),
        checkpoint_gb=checkpoint.size_gb,
        image_gb=table.image_gb,
        dataset_gb=table.dataset_gb,
        disk_gb=table.disk_gb,
        deadline=jobs.hours(table.deadline),
        reruns=reruns if table.odds is None else by_odds(table.odds),
    )


def _bidder(tuned: Tuned) -> market_options.Bidder:
    headroom = getattr(tuned.params, "headroom", None)
    known = type(tuned.strategy).__module__.rpartition(".")[2] in _WHOLLY_KNOWN
    return market_options.Bidder(tuned.name, float(headroom) if headroom is not None else None, known)


async def _place(
    table: jobs.JobTable, model: GpuModel, market: str, known: _Known, now: datetime
) -> market_options.Place:
    reader = known.reader
    fresh = [each for each in known.asked if (each.market, each.gpu) == (market, model)]
    recorded = await reader.prices(market, model, limit=ROWS) if reader is not None else []
    samples = [*recorded, *fresh]
    hours = await reader.price_hours(market, model, limit=ROWS) if reader is not None else []
    records = [one for one in await reader.hosts() if one.market == market] if reader is not None else []
    asks = past_runs.asks(samples, hours, table.gpus)
    leases = [one for one in await reader.leases(limit=ROWS) if one.market == market] if reader is not None else []
    rules = registered_markets.record(market).rules if market in registered_markets.names() else ASSUMED
    floors = past_runs.floors(samples, leases, table.gpus, rules.price_paid)
    of = f"of {table.gpus}x {model} on {market} in the ledger{' and as asked now' if fresh else ''}"
    given = tuple(() if rate is None else (money.per_hour(rate * table.gpus),) for rate in (table.price, table.floor))
    return market_options.Place(
        market=market,
        asks=given[0] or past_runs.cases(asks),
        floors=given[1] or past_runs.cases(floors),
        asks_from=f"given: ${table.price} per GPU and hour" if given[0] else _from(asks, "asks", of, "--price"),
        floors_from=f"given: floor ${table.floor} per GPU and hour"
        if given[1]
        else _from(floors, "floors", of, "--floor"),
        record=host_record.total(records, now) if records else HostRecord(market, ""),
        hazard=table.hazard,
        storage=None if table.storage_price is None else float(table.storage_price),
        per_gb=None if table.traffic_price is None else float(table.traffic_price),
        reliability=table.reliability,
        inet_down=table.inet_down,
        down=jobs.hours(table.down),
        max_price=_max_price(table, model),
        asks_as_of="given" if given[0] else _until(asks),
        floors_as_of="given" if given[1] else _until(floors),
        rules=rules,
        worth=_worth(table, given[0] or past_runs.cases(asks)),
        volume=float(table.network_volume_per_month) / market_options.HOURS_A_MONTH,
    )


def _max_price(table: jobs.JobTable, model: GpuModel) -> money.UsdPerHour | None:
    own = {gpu.model(name): price for name, price in table.max_price_by_gpu.items()}
    most = own.get(model, table.max_price)
    return None if most is None else money.per_hour(most)


def _from(hourly: past_runs.Hourly, what: str, of: str, fix: str) -> str:
    if not hourly:
        return f"there are no {what} {of}; let the daemon watch that model, or give {fix}"
    span = f"{len(hourly)} hours from {min(hourly):%Y-%m-%d} to {max(hourly):%Y-%m-%d}"
    return f"the {past_runs.CHEAPEST} least {what} {of}, {span}"


def _until(hourly: past_runs.Hourly) -> str:
    return f"{max(hourly):%Y-%m-%d}" if hourly else ""
