"""How a pool's interruptible capacity comes and goes through good and poor regimes that last for days.

In each regime, losing capacity and getting it back have one hazard while a spell is young and a lower one after. Now
and then a new regime is drawn. The observations of a pool show which regime it is in. Old evidence wears off by itself,
because the regime may have turned since.

Invariants:
1. A belief depends only on the observations and their order. Equal observations give equal beliefs.
2. The shares of a belief add up to one.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
MOST = 0.9
"""The highest chance of an event within one look: a hazard is not meaningful for spans shorter than the look."""
FIRST_AGE = 1.0
"""Assumed age in hours of the state at the first look, since nobody knows that it is young."""
UP, DOWN, STATES = 0, 2, 4
"""Indices of a regime's states: young and old with capacity, then young and old without."""


@dataclass(frozen=True)
class Regimes:
    """Hazards per hour by regime, each (young with capacity, old with, young without, old without).

    `shares` are the frequencies of the regimes. A spell is young for `young_hours`. A regime lasts `turn_hours` on
    average before another is drawn.
    """

    hazards: tuple[tuple[float, float, float, float], ...]
    shares: tuple[float, ...]
    young_hours: float = 0.5
    turn_hours: float = 24.0

    @property
    def count(self) -> int:
        """How many regimes there are."""
        return len(self.shares)

    @cached_property
    def rates(self) -> Array:
        """The hazards, (regimes, 4)."""
        return np.array(self.hazards)

    @cached_property
    def prior(self) -> Array:
        """The shares, (regimes,)."""
        return np.array(self.shares) / sum(self.shares)

    def turns(self, hours: float) -> Array:
        """Return the chance of each regime after `hours`, (regimes before, regimes after)."""
        turned = -math.expm1(-hours / self.turn_hours)
        return (1.0 - turned) * np.eye(self.count) + turned * np.tile(self.prior, (self.count, 1))

    def chances(self, state: int, hours: float) -> Array:
        """Return for each regime the chance that a spell in this state ends within `hours`, (regimes,)."""
        ends: Array = np.minimum(self.rates[:, state] * hours, MOST)
        return ends


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The belief about a pool: whether it has capacity, for how many hours, and the probability of each regime."""

    is_up: bool
    age: float
    shares: Array

    def state(self, regimes: Regimes) -> int:
        """Return the state within a regime."""
        return (UP if self.is_up else DOWN) + (self.age >= regimes.young_hours)

    def vector(self, regimes: Regimes) -> Array:
        """Return the chances of every regime and state, (regimes * 4,)."""
        found = np.zeros((regimes.count, STATES))
        found[:, self.state(regimes)] = self.shares
        return found.reshape(-1)

    def rate(self, regimes: Regimes) -> float:
        """Return the hazard per hour of the end of the present spell."""
        return float(self.shares @ regimes.rates[:, self.state(regimes)])

    def later(self, regimes: Regimes, hours: float) -> float:
        """Return the chance of capacity after `hours`, if the regime lasts and the spell is no longer young."""
        lost, back = regimes.rates[:, UP + 1], regimes.rates[:, DOWN + 1]
        likely = back / (lost + back)
        return float(self.shares @ (likely + (self.is_up - likely) * np.exp(-(lost + back) * hours)))


@lru_cache(8)
def lasting(regimes: Regimes, hours: float) -> Regimes:
    """Return the same regimes, each lasting `hours` on average."""
    return regimes if hours == regimes.turn_hours else replace(regimes, turn_hours=hours)


def first(regimes: Regimes, *, is_up: bool) -> Belief:
    """Return the belief at the first look."""
    up_hours, down_hours = 1.0 / regimes.rates[:, UP + 1], 1.0 / regimes.rates[:, DOWN + 1]
    likely = up_hours / (up_hours + down_hours)
    shares = regimes.prior * (likely if is_up else 1.0 - likely)
    return Belief(is_up, FIRST_AGE, shares / shares.sum())


def observe(regimes: Regimes, belief: Belief, *, is_up: bool, hours: float) -> Belief:
    """Return the belief after `hours` more; `is_up` says whether capacity was there at their end."""
    ends = regimes.chances(belief.state(regimes), hours)
    has_changed = is_up is not belief.is_up
    shares = belief.shares * (ends if has_changed else 1.0 - ends)
    return Belief(is_up, 0.0 if has_changed else belief.age + hours, shares / shares.sum() @ regimes.turns(hours))


FLICKER, FLICKER_SHARE = (6.0, 6.0, 4.0, 4.0), 0.005
"""The regime of a pool whose capacity comes for ten minutes and goes for a quarter of an hour, whatever its age.

None of the recorded pools did so for a day. Without it no regime says that every start is lost before it works, so work
restarts for ever in such a pool, and more time makes it dearer. Its share is the chance that the rule of succession
gives to what 200 days of pools never showed; the records have about 500. It is the likeliest regime once three spells
in a row have ended at the next look.
"""


def with_flicker(regimes: Regimes) -> Regimes:
    """Return these regimes and `FLICKER`, the others at less by its share."""
    others = tuple(share * (1.0 - FLICKER_SHARE) for share in regimes.shares)
    return replace(regimes, hazards=(*regimes.hazards, FLICKER), shares=(*others, FLICKER_SHARE))


FITTED = Regimes(
    hazards=(
        (0.871, 0.244, 1.34, 0.344),
        (1.47, 0.699, 3.22, 0.762),
        (1.97, 0.0317, 1.42, 0.0304),
        (2.5, 1.26, 1.19, 0.331),
    ),
    shares=(0.361, 0.133, 0.295, 0.211),
)
"""Fitted by `agent.lab.pools.regime_fitting` (`gpubid lab fit`) to recorded availability of AWS (8 pools of us-west-2
from 2022-10-26, 9 zones from 2023-02-15) and GCP (16 H100 at once in 13 zones from 2025-10-03), of the artifacts of
"Can't Be Late" (NSDI 2024) and SkyNomad (NSDI 2027). They are of clouds, not of a bid market. A pool's own evidence
outweighs them within hours."""

SHIPPED = with_flicker(FITTED)
