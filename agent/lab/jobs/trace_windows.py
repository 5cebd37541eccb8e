"""Windows cut from traces: stretches of one pool, or of several that share their time, over which a job runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from agent.lab.bench import blocks
from agent.lab.jobs.job_terms import HOUR, Course, Grid, Window
from agent.lab.traces.trace_files import Trace


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in $/h that replace the traces' own. With None the traces' prices count, tick by tick."""

    spot: float | None = None
    on_demand: float | None = None


OWN = Prices()


@dataclass(frozen=True, slots=True)
class Cut:
    """How windows are cut: the hours of each without its spare ticks, and the seconds from one start to the next.

    A window begins at the tick nearest to its instant. A pool with fewer than `instances` at once has no capacity.
    """

    hours: float
    stride_seconds: float
    prices: Prices = OWN
    instances: int = 1


def cut(pools: Sequence[Trace], how: Cut) -> Iterator[Window]:
    """Yield the windows of pools that share their ticks, each with `blocks.SPARE_TICKS` at its end."""
    tick, names = pools[0].gap_seconds, tuple(trace.pool for trace in pools)
    whole, length = _course(pools, how), int(how.hours * HOUR) // tick + blocks.SPARE_TICKS
    for first in begins(len(whole.up), length, how.stride_seconds, tick):
        span = slice(first, first + length)
        course = Course(whole.up[span], whole.spot[span], whole.on_demand[span])
        yield Window(names, tick, first, course, pools[0].start + timedelta(seconds=first * tick))


def begins(ticks: int, length: int, stride_seconds: float, tick: int) -> Iterator[int]:
    """Yield the first ticks of stretches of `length` ticks among `ticks`, each the nearest to its instant."""
    first, count = 0, 0
    while first + length <= ticks:
        yield first
        count += 1
        first = round(count * stride_seconds / tick)


def _course(pools: Sequence[Trace], how: Cut) -> Course:
    ticks = min(trace.ticks for trace in pools)
    return Course(
        np.stack([trace.available[:ticks] >= how.instances for trace in pools], axis=1),
        _prices([trace.spot_prices[:ticks] for trace in pools], how.prices.spot),
        _prices([trace.on_demand_prices[:ticks] for trace in pools], how.prices.on_demand),
    )


def _prices(own: Sequence[Grid], given: float | None) -> Grid:
    prices = np.stack(list(own), axis=1)
    return prices if given is None else np.full_like(prices, given)
