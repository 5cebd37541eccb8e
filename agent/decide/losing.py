"""How soon a pool is expected to take what it holds: less and less as it holds it, by its own record and the others'.

Theory: the chance of a loss in an hour of holding at age a is q kappa / (a + s), a Lomax lifetime: public spot traces
fall like that. A pool's q is Gamma around what all pools together showed; losses are Poisson over the hours held, each
weighed by kappa / (a + s), so the posterior mean is (mean x weight + losses) / (weight + weighed hours). What was seen
counts half after `HALF_LIFE_HOURS`: markets drift.
Source: Gamma-Poisson conjugacy (Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6); the shape of lifetimes as
in "Can't Be Late" (NSDI 2024).

Invariants:
1. A pool of which nothing was seen is worth what all of them together are.
2. Equal looks in equal order give equal figures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

KAPPA = 0.8
S_HOURS = 0.5
"""The shape of public traces (kappa 0.6 to 1.1, s 0.3 to 0.5 h). On AWS availability of 2022 and 2023 and on H100s of
2025, kappa 0.6 to 1.0 and s 0.3 to 1.0 h changed the cost of `warm`'s choices by less than two per cent."""
WEIGHT = 1.0
"""How many losses' worth of hours of its own a pool needs to count as much as what is known of all."""
HALF_LIFE_HOURS = 24.0
OUTLOOK_HOURS = 4.0
"""Over so many hours it is judged whether a pool is worth being in: what stays becomes safer."""


def at_age(hours: float) -> float:
    """Return the losses per hour to expect of an ordinary pool that has been held for `hours`."""
    return KAPPA / (hours + S_HOURS)


def ahead(hours: float) -> float:
    """Return the mean of `at_age` over the next `OUTLOOK_HOURS`."""
    return KAPPA * math.log1p(OUTLOOK_HOURS / (hours + S_HOURS)) / OUTLOOK_HOURS


def scaled(loss_rate: float, hours: float) -> tuple[float, float]:
    """Return the losses per hour to expect at an age, and their mean over the next hours, of a host of a known rate.

    A rate is taken to be what the first `OUTLOOK_HOURS` of a stay show.
    """
    return loss_rate * at_age(hours) / ahead(0.0), loss_rate * ahead(hours) / ahead(0.0)


@dataclass(slots=True)
class Record:
    """What one pool showed: since when it holds something (hours of the same clock), losses, weighed hours held."""

    since: float | None = None
    losses: float = 0.0
    weighed: float = 0.0

    def held(self, now: float, hours: float) -> None:
        """Count the `hours` up to `now`, through which the pool held what it was asked to."""
        if self.since is None:
            self.since = now - hours
        self._age(hours)
        self.weighed += hours * at_age(now - self.since)

    def lost(self, now: float, hours: float, *, all_of_it: bool) -> None:
        """Count a loss within the `hours` up to `now`."""
        self._age(hours)
        self.losses += 1.0
        self.since = None if all_of_it else now

    def empty(self, hours: float) -> None:
        """Let `hours` pass in which nothing was held there."""
        self._age(hours)
        self.since = None

    def _age(self, hours: float) -> None:
        kept = 0.5 ** (hours / HALF_LIFE_HOURS)
        self.losses *= kept
        self.weighed *= kept


def hazards(records: Sequence[Record], now: float) -> list[tuple[float, float]]:
    """Return of each pool the losses per hour to expect now, and their mean over the next hours of holding on."""
    losses, weighed = sum(each.losses for each in records), sum(each.weighed for each in records)
    mean = WEIGHT * (WEIGHT + losses) / (WEIGHT + weighed)
    found = []
    for each in records:
        quality = (mean + each.losses) / (WEIGHT + each.weighed)
        age = 0.0 if each.since is None else now - each.since
        found.append((quality * at_age(age), quality * ahead(age)))
    return found
