"""The hindsight bid: the least cost of useful work with knowledge of the whole day.

For each span between two looks and each slice that meets the workload's requirements, the price is the lower of the
host's own floor and its ask, with disk: no bid below the floor ever runs, and on demand costs the ask. The path over
hosts is free. It moves between any two spans to the cheapest slice per DLPerf, loads and restores nothing, is never
outbid, and in each span is as fast as the fastest available slice. A host is out of reach only while it does not
answer, or while a renter from the world's beginning, whom nothing displaces, holds it. All of these are relaxations.
Floors, asks and outages do not depend on anybody's actions. So the same work costs any strategy at least as much, apart
from price changes within one span.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from agent.lab.bids import bid_market
from agent.markets import port
from agent.simulator.vast.model import Slice
from agent.simulator.vast.world import World

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Span:
    """The cheapest capacity of a span: dollars per DLPerf-hour, and the most DLPerf-hours in it.

    `hours` is its length, and `rate` the least that an hour of any capacity costs.
    """

    price: float
    work: float
    hours: float = 0.0
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Bound:
    """A day's spans in rising order of price."""

    spans: tuple[Span, ...]

    @property
    def work(self) -> float:
        """The most possible DLPerf-hours."""
        return sum(span.work for span in self.spans)

    def dollars(self, work: float) -> float:
        """Return the least cost of so many DLPerf-hours, or of all possible ones if fewer are possible."""
        found, left = 0.0, work
        for span in self.spans:
            found += span.price * min(span.work, left)
            left -= span.work
            if left <= 0:
                break
        return found

    def least(self, hours: float, worth: float) -> float:
        """Return the least cost of a day of so many hours, if an hour without work costs `worth` dollars."""
        worked = sum(min(span.rate, worth) * span.hours for span in self.spans)
        return worked + worth * max(hours - sum(span.hours for span in self.spans), 0.0)


def bound(world: World, query: port.OfferQuery, hours: float, step: timedelta) -> Bound:
    """Return the bound of a day. It lets time pass in `world`, in which we rent nothing."""
    slices = [slice_ for slice_ in world.slices.values() if bid_market.fits(slice_, query)]
    seconds = step.total_seconds()
    found: list[Span] = []
    before = _prices(world, slices, query.disk_gb)
    for count in range(1, round(hours * HOUR / seconds) + 1):
        world.advance_to(world.start_time + count * seconds)
        after = _prices(world, slices, query.disk_gb)
        found += _span([*before, *after], seconds / HOUR)
        before = after
    return Bound(tuple(sorted(found, key=lambda span: span.price)))


def _span(prices: Iterable[tuple[float, float]], hours: float) -> list[Span]:
    """Return the span for the (dollars per DLPerf-hour, DLPerf) of its slices, or none without any."""
    known = list(prices)
    if not known:
        return []
    price, fastest = min(each[0] for each in known), max(each[1] for each in known)
    return [Span(price, fastest * hours, hours, min(one * other for one, other in known))]


def _prices(world: World, slices: Iterable[Slice], disk_gb: float) -> list[tuple[float, float]]:
    found = []
    for slice_ in slices:
        if not world.is_listed(slice_) or world.resident_until(slice_) > world.now:
            continue
        disk = slice_.host.storage_price * disk_gb / bid_market.HOURS_A_MONTH
        rate = min(world.host_floor(slice_), world.ask(slice_)) + disk
        dlperf = slice_.host.dlperf_per_gpu * slice_.num_gpus
        found.append((rate / dlperf, dlperf))
    return found
