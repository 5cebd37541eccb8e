"""Demand: when rivals come to a host, which GPUs they want, their bids and their stay.

Every draw takes the same number of values from its stream, in any state of the market. So our actions on a host do not
change which rivals come there next.
"""

import dataclasses
import math
import random

from agent.simulator import recorded_figures
from agent.simulator.climate import Climate

_HOUR = 3600.0


@dataclasses.dataclass(frozen=True, slots=True)
class Wish:
    """The wishes of one rival, drawn before it sees a price."""

    which: float  # 0-1, among the host's slices
    is_on_demand: bool
    over_floor: float  # its bid over the host's floor
    stay: float  # seconds


def churn(rng: random.Random, climate: Climate) -> float:
    """Draw how many rivals per hour want some slice of a host."""
    shape = recorded_figures.CHURN_SHAPE
    return rng.gammavariate(shape, recorded_figures.CHURN_MEAN / shape) * climate.demand.arrivals


def gap(rng: random.Random, per_hour: float) -> float:
    """Draw the seconds until the next of a Poisson stream; inf where nothing ever comes."""
    waited = rng.expovariate(1.0)
    return waited / per_hour * _HOUR if per_hour > 0 else math.inf


def wish(rng: random.Random, climate: Climate) -> Wish:
    """Draw one rival."""
    which, tenure, kind, size = rng.random(), rng.random(), rng.random(), rng.gauss(0.0, 1.0)
    median, deviation = recorded_figures.TIMID_BID if kind < recorded_figures.TIMID_SHARE else recorded_figures.BOLD_BID
    return Wish(
        which=which,
        is_on_demand=tenure < climate.demand.on_demand_share,
        over_floor=max(median * math.exp(deviation * size), 1.0),
        stay=stay(rng),
    )


def contest(rng: random.Random, climate: Climate) -> float | None:
    """Draw the seconds until another renter wants the slice that was just taken; None if none does."""
    median, deviation = recorded_figures.CONTEST_MINUTES
    drawn, size = rng.random(), rng.gauss(0.0, 1.0)
    if drawn >= min(recorded_figures.CONTEST_SHARE * climate.demand.arrivals, 0.8):
        return None
    return 60.0 * median * math.exp(deviation * size)


def stay(rng: random.Random) -> float:
    """Draw how long a rival stays, seconds."""
    drawn, size = rng.random(), rng.gauss(0.0, 1.0)
    _, minutes, deviation = recorded_figures.HOLDS[-1]
    for share, *kind in recorded_figures.HOLDS:
        if drawn < share:
            minutes, deviation = kind
            break
        drawn -= share
    return 60.0 * minutes * math.exp(deviation * size)


def residence(rng: random.Random) -> float:
    """Draw how long a long on-demand renter stays, seconds."""
    median, deviation = recorded_figures.RESIDENT_HOURS
    return _HOUR * median * math.exp(deviation * rng.gauss(0.0, 1.0))


def residence_left(rng: random.Random) -> float:
    """Draw how long a long on-demand renter seen at a random moment still stays, seconds; long stays are seen more."""
    median, deviation = recorded_figures.RESIDENT_HOURS
    return _HOUR * median * math.exp(deviation**2 + deviation * rng.gauss(0.0, 1.0)) * rng.random()


def residents_per_hour(climate: Climate) -> float:
    """Return how often long on-demand renters must come to a free host to hold the climate's share of all hosts."""
    median, deviation = recorded_figures.RESIDENT_HOURS
    taken = min(climate.demand.taken, 0.95)
    return taken / (1.0 - taken) / (median * math.exp(deviation**2 / 2))


def outage(rng: random.Random) -> float:
    """Draw how long a host is silent, seconds; inf if it never comes back."""
    median, deviation = recorded_figures.OUTAGE_MINUTES
    seconds = 60.0 * median * math.exp(deviation * rng.gauss(0.0, 1.0))
    return math.inf if rng.random() < recorded_figures.GONE_SHARE else seconds


def outages_per_hour(true_reliability: float, climate: Climate) -> float:
    """Return how many outages per hour make a host as reliable as it truly is."""
    median, deviation = recorded_figures.OUTAGE_MINUTES
    mean_hours = median / 60.0 * math.exp(deviation**2 / 2)
    return (1.0 - true_reliability) / true_reliability / mean_hours * climate.failures
