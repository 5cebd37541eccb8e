"""A trace in a few figures."""

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from agent.lab.traces import survival
from agent.lab.traces.trace_files import Prices, Trace

Range = tuple[float, float] | None
"""The least and the greatest of the known values, or None without any."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A pool: its span and tick, how often capacity was there, how long it stayed and stayed away, prices in $/h.

    `stays` and `gaps` are medians in hours by Kaplan and Meier, or None if capacity never changed or few spells ended.
    """

    pool: str
    gpu: str
    gpus: int
    start: datetime
    end: datetime
    ticks: int
    gap_seconds: int
    up_share: float
    most: int
    losses: int
    stays: float | None
    gaps: float | None
    spot: Range
    on_demand: Range
    unpriced: int


def of(trace: Trace) -> Summary:
    """Return the figures of a trace. `unpriced` counts ticks without a price."""
    is_up = trace.available > 0
    unpriced = np.isnan(trace.spot_prices) | np.isnan(trace.on_demand_prices)
    return Summary(
        pool=trace.pool,
        gpu=trace.gpu,
        gpus=trace.gpus,
        start=trace.start,
        end=trace.end,
        ticks=trace.ticks,
        gap_seconds=trace.gap_seconds,
        up_share=float(is_up.mean()),
        most=int(trace.available.max()),
        losses=int((is_up[:-1] & ~is_up[1:]).sum()),
        stays=_median(trace, of_capacity=True),
        gaps=_median(trace, of_capacity=False),
        spot=_range(trace.spot_prices),
        on_demand=_range(trace.on_demand_prices),
        unpriced=int(unpriced.sum()),
    )


def _median(trace: Trace, *, of_capacity: bool) -> float | None:
    spells = survival.spells(trace.available > 0, trace.gap_seconds / 3600, of_capacity=of_capacity)
    if not spells:
        return None
    curve = survival.kaplan_meier(spells)
    below = np.flatnonzero(curve.shares <= _HALF)
    return float(curve.ages[below[0]]) if len(below) else None


def _range(prices: Prices) -> Range:
    known = prices[~np.isnan(prices)]
    return (float(known.min()), float(known.max())) if len(known) else None


_HALF = 0.5
