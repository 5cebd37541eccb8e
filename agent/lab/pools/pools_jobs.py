"""The cases of `deadline-pools`: each window of a set of pools, which share their time, with each job."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np

from agent.config.problems import ConfigError, Problem
from agent.lab.bench import blocks
from agent.lab.jobs import pool_place, trace_windows
from agent.lab.jobs.job_terms import HOUR, JobCase, Terms, Window
from agent.lab.jobs.trace_windows import Cut, Prices
from agent.lab.traces import trace_files

MOST_NAMED = 2


@dataclass(frozen=True, slots=True)
class Job:
    """Hours of work, hours allowed, hours that a start loses, `gpus` instances at once, and the cost of a move."""

    work: float
    allowed: float
    overhead: float
    instances: int = 1
    gigabytes: float = 50.0
    egress_price: float = 0.02


@dataclass(frozen=True, slots=True)
class Windows:
    """Length and stride in hours, and prices in $/h that replace the traces' own."""

    hours: float
    stride_hours: float
    spot_price: float | None = None
    on_demand_price: float | None = None


def chosen(folder: Path, names: Sequence[str]) -> tuple[trace_files.Trace, ...]:
    """Return the traces of the named pools, or all traces if none is named. A zone means every pool in it.

    Raises:
        ConfigError: a file is no trace, a name is of no pool, or the traces do not share their ticks.
    """
    traces = trace_files.folder(folder)
    for name in names:
        if not any(_is_of(trace, name) for trace in traces):
            raise _wrong(folder, name, "no_pool", f"is no pool of these; there is {', '.join(t.pool for t in traces)}")
    some = tuple(trace for trace in traces if not names or any(_is_of(trace, name) for name in names))
    if len({(trace.gap_seconds, trace.start) for trace in some}) > 1:
        raise _wrong(folder, "start", "not_aligned", "the pools do not share start and ticks; name others with --pools")
    return some


def _is_of(trace: trace_files.Trace, name: str) -> bool:
    return name in (trace.pool, trace.pool.split("_")[0])


def cases(pools: Sequence[trace_files.Trace], job: Job, windows: Windows, block_hours: int) -> Iterator[JobCase]:
    """Yield the cases of one set of pools under one job. Cases that begin in the same block are of one cluster.

    Raises:
        ConfigError: a price is not known.
        ValueError: the deadline is longer than the window, or not even on-demand can meet it.
    """
    terms = _terms(pools, job)
    if job.allowed > windows.hours:
        raise ValueError(f"a deadline of {job.allowed:g} h is longer than --window-hours {windows.hours:g}")
    if terms.work + terms.overhead > terms.counted:
        raise ValueError(f"{job.work:g} h of work and a start do not fit into {job.allowed:g} h; allow more")
    prices = Prices(windows.spot_price, windows.on_demand_price)
    _check_prices(pools, prices)
    # Whole ticks, at least one, so that the windows of all sets begin at the same instants.
    stride = max(int(windows.stride_hours * HOUR) // terms.tick, 1) * terms.tick
    for window in trace_windows.cut(pools, Cut(windows.hours, stride, prices, job.instances)):
        yield JobCase(
            key=f"{'+'.join(terms.pools)}/{window.first}/{job.allowed:g}/{job.overhead:g}",
            cluster=_cluster(pools, window, block_hours),
            group=_group(terms),
            terms=terms,
            window=window,
        )


def _terms(pools: Sequence[trace_files.Trace], job: Job) -> Terms:
    names = tuple(trace.pool for trace in pools)
    return Terms(
        pools=names,
        tick=pools[0].gap_seconds,
        work=round(job.work * HOUR),
        deadline=round(job.allowed * HOUR),
        overhead=round(job.overhead * HOUR),
        egress=pool_place.egress(names, job.gigabytes, job.egress_price),
    )


def _cluster(pools: Sequence[trace_files.Trace], window: Window, block_hours: int) -> str:
    """Return the block in which a window begins. The pools of a set share their time."""
    hours = timedelta(seconds=window.first * window.tick) / timedelta(hours=1)
    return f"{pools[0].start:%Y-%m-%d}+{blocks.of(hours, block_hours)}"


def _group(terms: Terms) -> str:
    """Return the pools, hours allowed and hours of overhead, which determine the possible saving."""
    zones = [pool.partition("_")[0] for pool in terms.pools]
    named = " + ".join(zones) if len(zones) <= MOST_NAMED else f"{len(zones)} pools"
    return f"{named}, {terms.deadline / HOUR:g} h allowed, {terms.overhead / HOUR:g} h a start"


def _check_prices(pools: Sequence[trace_files.Trace], prices: Prices) -> None:
    ticks = min(trace.ticks for trace in pools)
    for given, own, option in (
        (prices.spot, [trace.spot_prices for trace in pools], "--spot-price"),
        (prices.on_demand, [trace.on_demand_prices for trace in pools], "--on-demand-price"),
    ):
        if given is None and any(np.isnan(each[:ticks]).any() for each in own):
            raise _wrong(Path("traces"), option, "no_price", f"the traces have ticks without a price; name {option}")


def _wrong(path: Path, key: str, code: str, sentence: str) -> ConfigError:
    return ConfigError([Problem(str(path), 1, key, code, sentence)])
