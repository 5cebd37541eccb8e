"""The worth of an hour with too few warm slots, from a target for their availability and the record so far.

A service that must be warm for a share of the time pays least if each hour short has the same price at all times, the
Lagrange multiplier of the target. Nobody knows that price beforehand. So it begins at a price that follows from the
allowed time short. It rises while more time is short than allowed, and falls while less is: dual ascent, with the price
as the exponential of the sum. The sum is bounded, so that a calm month does not allow a bad week, and a bad week is
forgotten.

Theory: Everett, Generalized Lagrange Multiplier Method, Operations Research 11(3), 1963; online dual ascent: Neely,
Stochastic Network Optimization, 2010, chapter 4, of which this is the form with exponential prices.

Invariants:
1. The dial depends only on the target and the record. Equal ones give equal dials, also after a restart.
2. For one record a higher target never gives a lower worth.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from agent.domain.warm_time import MICROS, Stretch, WarmTime

MOST_WORTH = 10_000.0
"""Hours of all slots on demand: `short_worth` has the same bound."""
_DAY = 24 * 3600 * MICROS


@dataclass(frozen=True, slots=True)
class Law:
    """The constants by which the worth follows from the record."""

    first: float = 0.12
    """The worth without a record, times the allowance, which is 1 - target."""
    gain: float = 0.5
    """The change of the worth's logarithm by as much time short as a day allows."""
    most: float = 3.0
    """The most by which all changes together change the logarithm."""


LAW = Law()
"""At 99 % the first worth is 12 hours. Of 0.06, 0.12 and 0.24 it is the cheapest with which each of the records of
`lab.traces.provenance.WARM` reached 99 %. The other two are chosen, not fitted: two days without time short divide the
worth by e, and it stays within a factor of twenty."""


@dataclass(frozen=True, slots=True)
class Dial:
    """The worth of an hour short for a target, in hours of all slots on demand, and the availability so far.

    `availability` is None before the first record; `wanted_hours` are the hours behind it.
    """

    target: float
    worth: float
    availability: float | None = None
    wanted_hours: float = 0.0

    @property
    def sentence(self) -> str:
        """The target and the availability so far, in words."""
        if self.availability is None:
            return f"a target of {self.target:.4g} warm, nothing recorded yet"
        return f"a target of {self.target:.4g} warm, {self.availability:.4f} achieved in {self.wanted_hours:.0f} h"


def of(target: float, seen: WarmTime | None, law: Law = LAW) -> Dial:
    """Return the dial for a target above 0 and below 1, after a record."""
    if seen is None:
        return Dial(target, worth(target, (), law))
    return Dial(target, worth(target, seen.stretches, law), seen.availability, seen.wanted_hours)


def worth(target: float, stretches: Iterable[Stretch], law: Law = LAW) -> float:
    """Return the worth of an hour short after these stretches, the oldest first."""
    allowed, risen = 1.0 - target, 0.0
    for each in stretches:
        beyond = (each.short - allowed * each.wanted) / (allowed * _DAY)
        risen = min(max(risen + law.gain * beyond, -law.most), law.most)
    return min(law.first / allowed * math.exp(risen), MOST_WORTH)
