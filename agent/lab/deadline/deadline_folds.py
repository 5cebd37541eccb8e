"""Cross-fitting: the part of the traces for a fit, so that no run is scored on data of its own fit.

`none` takes the shipped hazards. `pool` leaves out all pools of the window's zone, whose capacity comes and goes
together. `time` leaves out, in every pool, the four days in which the window begins, and all days that windows of that
beginning overlap.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.decide.deadline.hazards import Hazards
from agent.lab.bench import blocks
from agent.lab.deadline import hazard_fitting
from agent.lab.deadline.cross_fit import CrossFit
from agent.lab.jobs.job_terms import Window
from agent.lab.traces.trace_files import Trace

LEAST_TICKS = 2


@dataclass(frozen=True, slots=True)
class Fold:
    """A part of the traces that is scored together: the zone or the four days that the fit leaves out."""

    zone: str = ""
    block: int = 0


def fold(window: Window, by: CrossFit) -> Fold:
    """Return the fold of a window of one pool."""
    if by is CrossFit.POOL:
        return Fold(zone=zone(window.pools[0]))
    return Fold(block=window.block)


def fitted(traces: Sequence[Trace], left_out: Fold, by: CrossFit, hours: float) -> Hazards:
    """Return the hazards fitted on all but a fold of windows of `hours`.

    Raises:
        ValueError: nothing is left to fit on.
    """
    kept = _of_other_zones(traces, left_out) if by is CrossFit.POOL else _of_other_days(traces, left_out, hours)
    return hazard_fitting.fit(kept)


def zone(pool: str) -> str:
    """Return the zone of a pool: the part of its name before the first underscore."""
    return pool.partition("_")[0]


def _of_other_zones(traces: Sequence[Trace], left_out: Fold) -> Iterator[hazard_fitting.Sight]:
    for trace in traces:
        if zone(trace.pool) != left_out.zone:
            yield hazard_fitting.Sight(trace.available > 0, trace.gap_seconds / 3600)


def _of_other_days(traces: Sequence[Trace], left_out: Fold, hours: float) -> Iterator[hazard_fitting.Sight]:
    for trace in traces:
        gap = trace.gap_seconds / 3600
        begin = int(left_out.block * blocks.CLUSTER_HOURS / gap)
        end = int(((left_out.block + 1) * blocks.CLUSTER_HOURS + hours) / gap) + 1
        for part in (trace.available[:begin], trace.available[end:]):
            if len(part) >= LEAST_TICKS:
                yield hazard_fitting.Sight(part > 0, gap)
