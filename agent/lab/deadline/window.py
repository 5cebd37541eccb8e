"""Windows cut from traces: the stretches of one pool that a job is run over."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from agent.lab.bench import blocks
from agent.lab.traces.trace_files import Trace


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a pool: for each tick whether capacity is there, and both prices in $/h."""

    pool: str
    first: int
    gap_seconds: int
    is_up: tuple[bool, ...]
    spot_prices: tuple[float, ...]
    on_demand_prices: tuple[float, ...]
    start: datetime = datetime(1970, 1, 1, tzinfo=UTC)

    @property
    def span(self) -> tuple[datetime, datetime]:
        """When it begins and ends."""
        return self.start, self.start + timedelta(seconds=len(self.is_up) * self.gap_seconds)

    @property
    def cluster(self) -> str:
        """The pool and the four days it begins in."""
        return f"{self.pool}/{self.block}"

    @property
    def block(self) -> int:
        """The four days it begins in."""
        return blocks.of(self.first * self.gap_seconds / 3600)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in $/h that stand for the trace's own; None takes the trace's, tick by tick."""

    spot: float | None = None
    on_demand: float | None = None


OWN = Prices()


def cut(trace: Trace, hours: float, stride_hours: float, prices: Prices) -> tuple[Window, ...]:
    """Return the windows of `hours` and `blocks.SPARE_TICKS`, one every `stride_hours` from the first tick on."""
    length = int(hours * 3600 / trace.gap_seconds) + blocks.SPARE_TICKS
    seconds = stride_hours * 3600
    starts: list[int] = []
    while (first := round(len(starts) * seconds / trace.gap_seconds)) + length <= trace.ticks:
        starts.append(first)
    return tuple(_window(trace, first, length, prices) for first in starts)


def _window(trace: Trace, first: int, length: int, prices: Prices) -> Window:
    span = slice(first, first + length)
    spot = trace.spot_prices[span] if prices.spot is None else np.full(length, prices.spot)
    on_demand = trace.on_demand_prices[span] if prices.on_demand is None else np.full(length, prices.on_demand)
    return Window(
        pool=trace.pool,
        first=first,
        gap_seconds=trace.gap_seconds,
        is_up=tuple((trace.available[span] > 0).tolist()),
        spot_prices=tuple(spot.tolist()),
        on_demand_prices=tuple(on_demand.tolist()),
        start=trace.start + timedelta(seconds=first * trace.gap_seconds),
    )
