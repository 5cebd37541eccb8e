"""The cost of a way on after a loss, in dollars over a span of time.

The cost is the payments plus the worth of every hour of the span in which the slot is not useful.
"""

import math
from dataclasses import dataclass

from agent.decide.pricing.worth.net_value import TROUBLE_HOURS
from agent.domain.money import UsdPerHour
from agent.domain.work.decision import Option, Term
from agent.domain.work.workload import Workload


@dataclass(frozen=True, slots=True)
class Way:
    """One way on after a loss, before it is priced."""

    name: str
    rate: UsdPerHour
    disk_rate: UsdPerHour
    speed: float
    """Its DLPerf over that of the workload's fastest named card, or else of the lost lease; at most 1."""
    start_hours: float
    hazard: float = 0.0
    moved: float = 0.0
    """Dollars paid for the data that the new host downloads."""
    lost_work: float = 0.0
    """Dollars for repeating the lost work."""


def over_span(way: Way, work: Workload, worth_of_hour: UsdPerHour, hours: float) -> Option:
    """Return one way priced over so many hours.

    After the start the work runs. Each loss idles `TROUBLE_HOURS`, repeats the restore and loses half a checkpoint
    interval. Useful hours count by `speed`: an hour on a slower card is worth less, and no hour is worth more than the
    operator's price.
    """
    left = max(hours - way.start_hours, 0.0)
    losses = way.hazard * left / (1.0 + way.hazard * TROUBLE_HOURS)
    running = left - losses * TROUBLE_HOURS
    restore = (losses + 1.0) * work.checkpoint.restore.total_seconds() / 3600 if running > 0 else 0.0
    lost = losses * work.checkpoint.interval.total_seconds() / 7200
    useful = max(running - restore - lost, 0.0) * way.speed
    worth = worth_of_hour.dollars * (hours - useful)
    dollars = way.rate.dollars * running + way.disk_rate.dollars * hours + way.moved + way.lost_work + worth
    terms = (
        Term("price", way.rate.dollars, "$/h"),
        Term("gpu", way.rate.dollars * running, "$"),
        Term("disk", way.disk_rate.dollars * hours, "$"),
        Term("data to move", way.moved, "$"),
        Term("lost work", way.lost_work, "$"),
        Term("useful", useful, "h"),
        Term("worth of the other hours", worth, "$"),
        Term("speed", way.speed, ""),
        Term("interruptions", losses, ""),
    )
    # A wait has no such term, since nothing after it is priced.
    holds = (Term("chance to hold it", math.exp(-way.hazard * left), ""),) if way.hazard else ()
    return Option(way.name, dollars, terms + holds)
