"""The cases of `deadline`: each window of each pool alone, with each setting."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from agent.lab.jobs import trace_windows
from agent.lab.jobs.job_terms import HOUR, JobCase, Terms, Window
from agent.lab.jobs.trace_windows import Cut, Prices
from agent.lab.traces.trace_files import Trace


@dataclass(frozen=True, slots=True)
class Setting:
    """A job: whole seconds of work, of the allowed time, and of overhead at each start."""

    work: int
    allowed: int
    overhead: int

    @classmethod
    def of_hours(cls, work: float, allowed: float, overhead: float) -> "Setting":
        """Return the setting of these hours, rounded to whole seconds."""
        return cls(round(work * HOUR), round(allowed * HOUR), round(overhead * HOUR))


def windows(trace: Trace, hours: float, stride_hours: float, prices: Prices) -> Iterator[Window]:
    """Yield the windows of a pool, one every `stride_hours`."""
    return trace_windows.cut([trace], Cut(hours, stride_hours * HOUR, prices))


def case(window: Window, setting: Setting) -> JobCase:
    """Return a setting over a window of one pool. A last tick that the deadline cuts counts up to the deadline."""
    (pool,) = window.pools
    allowed, overhead = setting.allowed / HOUR, setting.overhead / HOUR
    return JobCase(
        key=f"{pool}/{window.first}/{allowed:g}/{overhead:g}",
        cluster=f"{pool}/{window.block}",
        group=f"{allowed:g} h allowed, {overhead:g} h a start",
        terms=Terms(
            pools=window.pools,
            tick=window.tick,
            work=setting.work,
            deadline=setting.allowed,
            overhead=setting.overhead,
            egress=np.zeros((1, 1)),
            counts_part=True,
        ),
        window=window,
    )
