"""Spans cut from traces: the same day of several pools, in steps.

Source of the steps: the simulator published with SkyServe (EuroSys'25, arXiv 2411.01438) looks every 30 seconds,
whatever the gap of the record, and reads a record of yes and no as "any number could be launched" or "none".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from agent.lab.bench import blocks
from agent.lab.jobs import trace_windows
from agent.lab.traces import trace_files
from agent.lab.traces.trace_files import Trace

LOOK_SECONDS = 30
ANY_NUMBER = 1_000_000
_ROUNDING = 1e-6
_ZONE = re.compile(r"^(?P<region>.+?)(?:-[a-z]|(?<=\d)[a-z])(?P<rest>_.*)?$")


@dataclass(frozen=True, slots=True)
class Setting:
    """The slots to keep warm, and the terms.

    `slots` must be warm in the share `target` of the steps. A start takes `cold_start_seconds`. On-demand costs
    `on_demand_multiple` times the median interruptible price of the group. `spot_price` ($/h) replaces the trace's own.
    `most_in_pool` bounds a pool whose record says only yes or no.
    """

    slots: int = 3
    cold_start_seconds: float = 120.0
    on_demand_multiple: float = 3.0
    target: float = 0.99
    spot_price: float | None = None
    most_in_pool: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """A stretch of a group of pools. `capacity` and `prices` ($/h) are (pools, steps). A step lasts `step_seconds`.

    A start is warm `cold_steps` steps later. The first `cold_steps` steps are not judged: nothing can be warm in them.
    """

    group: str
    first: int
    pools: tuple[str, ...]
    capacity: npt.NDArray[np.int64]
    prices: npt.NDArray[np.float64]
    on_demand_price: float
    step_seconds: float
    cold_steps: int
    begins_hours: float

    @property
    def key(self) -> str:
        """Group and first tick of the record."""
        return f"{self.group}/{self.first}"

    @property
    def cluster(self) -> str:
        """The day in which the span begins, or its four days if it is longer. Groups share zones, so all are in it."""
        is_short = self.steps * self.step_hours <= blocks.SHORT_DEADLINE_HOURS + _ROUNDING
        return f"{blocks.of(self.begins_hours, blocks.SHORT_CLUSTER_HOURS if is_short else blocks.CLUSTER_HOURS)}"

    @property
    def block(self) -> int:
        """The four days in which the span begins."""
        return blocks.of(self.begins_hours)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return int(self.capacity.shape[1])

    @property
    def step_hours(self) -> float:
        """The hours of a step."""
        return self.step_seconds / 3600

    @property
    def judged_hours(self) -> float:
        """The hours without the first `cold_steps` steps."""
        return (self.steps - self.cold_steps) * self.step_hours

    def has_prices(self) -> bool:
        """Whether every price is known."""
        return bool(np.isfinite(self.prices).all())


def region(pool: str) -> str:
    """Return the pool's name without the letter of its zone, which is the name of its region."""
    found = _ZONE.match(pool)
    return f"{found['region']}{found['rest'] or ''}" if found else pool


def groups(traces: Sequence[Trace]) -> tuple[tuple[str, tuple[Trace, ...]], ...]:
    """Return the groups of a folder: each region with two pools of like instances at least, and all pools together."""
    by_region = [(name, tuple(found)) for name, found in groupby(sorted(traces, key=_by_region), key=_by_region)]
    several = [(name, found) for name, found in by_region if 1 < len(found) < len(traces)]
    return (*several, ("all", tuple(traces)))


def _by_region(trace: Trace) -> str:
    return region(trace.pool)


def cut(traces: Sequence[Trace], hours: float, stride_hours: float, setting: Setting) -> Iterator[Span]:
    """Yield the spans of `hours`, one every `stride_hours`, of every group of the traces."""
    for name, found in groups(trace_files.with_counts(traces)):
        gap = found[0].gap_seconds
        length = int(hours * 3600 / gap)
        ticks = min(trace.ticks for trace in found)
        for first in trace_windows.begins(ticks, length, stride_hours * 3600, gap) if length else ():
            yield _span(name, found, slice(first, first + length), setting)


def _span(group: str, traces: Sequence[Trace], ticks: slice, setting: Setting) -> Span:
    gap = traces[0].gap_seconds
    looks = max(1, int(gap / LOOK_SECONDS))
    prices = np.stack([trace.spot_prices[ticks] for trace in traces])
    if setting.spot_price is not None:
        prices = np.full_like(prices, setting.spot_price)
    return Span(
        group=group,
        first=ticks.start,
        pools=tuple(trace.pool for trace in traces),
        capacity=np.stack([_capacity(trace, ticks, setting) for trace in traces]).repeat(looks, axis=1),
        prices=prices.repeat(looks, axis=1),
        on_demand_price=setting.on_demand_multiple * float(np.median(prices.mean(axis=1))),
        step_seconds=gap / looks,
        cold_steps=max(1, int(np.ceil(setting.cold_start_seconds * looks / gap - 1e-9))),
        begins_hours=ticks.start * gap / 3600,
    )


def _capacity(trace: Trace, ticks: slice, setting: Setting) -> npt.NDArray[np.int64]:
    if trace.counts:
        return trace.available[ticks]
    return trace.available[ticks] * (setting.most_in_pool or ANY_NUMBER)
