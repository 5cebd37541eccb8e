"""The expected loss rate of a place, by its own record and the common one. It falls with the lease's age.

Theory: the chance of a loss in an hour of holding at age a is q kappa / (a + s), a Lomax lifetime, as in public spot
traces. A place's q is Gamma around the q of all places together. Losses are Poisson over the hours held, each weighed
by kappa / (a + s), so the posterior mean is (mean x weight + losses) / (weight + weighed hours). Without the weights a
long calm stay would count as a calm host, and its age would count twice. Source: Gamma-Poisson conjugacy (Gelman et
al., Bayesian Data Analysis, 3rd ed., section 2.6); the shape of lifetimes as in "Can't Be Late" (NSDI 2024).

Invariants:
1. A place without a record is judged by the record of all places together.
2. Equal records give equal figures.
"""

import math

from agent.decide.pricing import useful_hour
from agent.domain.market.host import HostRecord

KAPPA = 0.8
S_HOURS = 0.5
"""The shape of public traces (kappa 0.6 to 1.1, s 0.3 to 0.5 h). On AWS availability of 2022 and 2023 and on H100s of
2025, kappa 0.6 to 1.0 and s 0.3 to 1.0 h changed the cost of `capacity_choice` by less than two per cent."""
WEIGHT = 1.0
"""The number of ordinary losses over whose hours a place's own record comes to weigh as much as the common one."""
OUTLOOK_HOURS = 4.0
"""The hours over which a place is judged, since a lease becomes safer with its age."""


def at_age(hours: float) -> float:
    """Return the expected losses per hour of an ordinary place with a lease that is `hours` old."""
    return KAPPA / (hours + S_HOURS)


def ahead(hours: float) -> float:
    """Return the mean of `at_age` over the next `OUTLOOK_HOURS`."""
    return weighed(hours, hours + OUTLOOK_HOURS) / OUTLOOK_HOURS


def weighed(begin: float, end: float) -> float:
    """Return the expected losses of an ordinary place between two ages in hours (an integral)."""
    return KAPPA * math.log((end + S_HOURS) / (begin + S_HOURS))


def ordinary(everything: HostRecord) -> float:
    """Return q of a place without a record, by the record of all places together.

    Without any record it comes from the assumed rate of the market's losses, taken as the rate of a stay's first hours.
    """
    losses, hours = useful_hour.MARKET_HAZARD_PRIOR
    weighed_hours = hours * ahead(0.0) + max(everything.weighed_hours, 0.0)
    return (losses + max(everything.market_losses, 0.0)) / weighed_hours


def expected(record: HostRecord | None, mean: float, age: float) -> tuple[float, float]:
    """Return the expected losses per hour of a place now, and their mean over the next hours of a lease.

    `mean` is the `ordinary` q. `age` is the hours for which the place has been held.
    """
    losses, hours = (record.market_losses, record.weighed_hours) if record is not None else (0.0, 0.0)
    quality = (WEIGHT * mean + max(losses, 0.0)) / (WEIGHT + max(hours, 0.0))
    return quality * at_age(age), quality * ahead(age)
