"""Cuts cases from trace files: windows of a set of pools, which share their time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np

from agent.config.problems import ConfigError, Problem
from agent.lab.bench import blocks
from agent.lab.pools import pool_place
from agent.lab.pools.pool_terms import HOUR, Course, Grid, PoolsCase, Terms
from agent.lab.traces import trace_files


@dataclass(frozen=True, slots=True)
class Job:
    """Hours of work, hours allowed and hours that a start loses; `gpus` instances at once; what moving costs."""

    work: float
    allowed: float
    overhead: float
    instances: int = 1
    gigabytes: float = 50.0
    egress_price: float = 0.02


@dataclass(frozen=True, slots=True)
class Windows:
    """Length and stride in hours, and prices in $/h that stand for the traces' own."""

    hours: float
    stride_hours: float
    spot_price: float | None = None
    on_demand_price: float | None = None


def chosen(folder: Path, names: Sequence[str]) -> tuple[trace_files.Trace, ...]:
    """Return the traces of the pools named, all where none is; a zone stands for every pool in it.

    Raises:
        ConfigError: a file is none, a name is of no pool, or the traces do not share their ticks.
    """
    found = trace_files.folder(folder)
    for name in names:
        if not any(_is_of(trace, name) for trace in found):
            raise _wrong(folder, name, "no_pool", f"is no pool of these; there is {', '.join(t.pool for t in found)}")
    some = tuple(trace for trace in found if not names or any(_is_of(trace, name) for name in names))
    if len({(trace.gap_seconds, trace.start) for trace in some}) > 1:
        raise _wrong(folder, "start", "not_aligned", "the pools do not share start and ticks; name others with --pools")
    return some


def _is_of(trace: trace_files.Trace, name: str) -> bool:
    return name in (trace.pool, trace.pool.split("_")[0])


def windows(pools: Sequence[trace_files.Trace], job: Job, cut: Windows) -> list[PoolsCase]:
    """Return the cases of one set of pools under one job.

    Raises:
        ConfigError: a price is not known.
        ValueError: the deadline is longer than the window, or not even on-demand can meet it.
    """
    tick = pools[0].gap_seconds
    terms = Terms(
        pools=tuple(trace.pool for trace in pools),
        tick=tick,
        work=round(job.work * HOUR),
        deadline=round(job.allowed * HOUR),
        overhead=round(job.overhead * HOUR),
        egress=pool_place.egress([trace.pool for trace in pools], job.gigabytes, job.egress_price),
    )
    if job.allowed > cut.hours:
        raise ValueError(f"a deadline of {job.allowed:g} h is longer than --window-hours {cut.hours:g}")
    if terms.work + terms.overhead > terms.ticks * tick:
        raise ValueError(f"{job.work:g} h of work and a start do not fit into {job.allowed:g} h; allow more")
    course = _course(pools, job.instances, cut)
    length, stride = int(cut.hours * HOUR) // tick + blocks.SPARE_TICKS, max(int(cut.stride_hours * HOUR) // tick, 1)
    return [
        PoolsCase(
            key=f"{'+'.join(terms.pools)}/{first}/{job.allowed:g}/{job.overhead:g}",
            cluster=_cluster(pools, first),
            terms=terms,
            course=Course(
                course.up[first : first + length],
                course.spot[first : first + length],
                course.on_demand[first : first + length],
            ),
            start=pools[0].start + timedelta(seconds=first * tick),
        )
        for first in range(0, len(course.up) - length + 1, stride)
    ]


def _cluster(pools: Sequence[trace_files.Trace], first: int) -> str:
    hours = timedelta(seconds=first * pools[0].gap_seconds) / timedelta(hours=1)
    return f"{pools[0].start:%Y-%m-%d}+{blocks.of(hours)}"


def _course(pools: Sequence[trace_files.Trace], instances: int, cut: Windows) -> Course:
    ticks = min(trace.ticks for trace in pools)
    up = np.stack([trace.available[:ticks] >= instances for trace in pools], axis=1)
    spot = _prices([trace.spot_prices[:ticks] for trace in pools], cut.spot_price, "--spot-price")
    ask = _prices([trace.on_demand_prices[:ticks] for trace in pools], cut.on_demand_price, "--on-demand-price")
    return Course(up, spot, ask)


def _prices(own: Sequence[Grid], given: float | None, option: str) -> Grid:
    prices = np.stack(list(own), axis=1)
    if given is not None:
        return np.full_like(prices, given)
    if np.isnan(prices).any():
        raise _wrong(Path("traces"), option, "no_price", f"the traces hold ticks without a price; name {option}")
    return prices


def _wrong(path: Path, key: str, code: str, sentence: str) -> ConfigError:
    return ConfigError([Problem(str(path), 1, key, code, sentence)])
