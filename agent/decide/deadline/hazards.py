"""How interruptible capacity of one pool comes and goes: hazards that fall with age, and the pool's own evidence.

Losing capacity and getting it back each have a hazard by age. Spells are heavy-tailed, so each bin of age has its own
rate. Pools differ: a few models scale both hazards, and the weight of a model is the likelihood of the observations
under it. Observations count for less as they age, since markets drift.

Invariants:
1. A belief depends only on the observations and their order. Equal observations give equal beliefs.
2. When evidence is very old, only the prior remains.
"""

import bisect
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agent.domain.money import UsdPerHour

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Hazards:
    """Hazards of a pool per hour, by bins of age, with several models of how good the pool is.

    `edges` are the ages in hours at which bins begin, the first 0. `losses` (bins,) are per hour with capacity,
    `returns` (bins,) per hour without. `factors` (models, 2) scale losses and returns; `weights` (models,) are the
    models' probabilities before any observation. Evidence loses half its weight in `half_life` hours.
    """

    edges: tuple[float, ...]
    losses: tuple[float, ...]
    returns: tuple[float, ...]
    factors: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    weights: tuple[float, ...] = (1.0,)
    half_life: float = 48.0

    def bin(self, age: float) -> int:
        """Return the bin of an age in hours."""
        return bisect.bisect_right(self.edges, age + _ROUNDING) - 1

    @cached_property
    def loss_rates(self) -> Array:
        """Losses per hour, (bins, models)."""
        return np.outer(self.losses, [factor for factor, _ in self.factors])

    @cached_property
    def return_rates(self) -> Array:
        """Returns per hour, (bins, models)."""
        return np.outer(self.returns, [factor for _, factor in self.factors])

    @cached_property
    def shape(self) -> tuple[tuple[float, float], ...]:
        """Pairs of an age in hours and the hazard of loss from there on, over its mean during a stay of a day."""
        ends = [*self.edges[1:], _DAY]
        lasting, hours = 1.0, 0.0
        for rate, begin, end in zip(self.losses, self.edges, ends, strict=True):
            kept = math.exp(-rate * (end - begin))
            hours += lasting * (1 - kept) / rate
            lasting *= kept
        mean = (1 - lasting) / hours
        return tuple((age, rate / mean) for age, rate in zip(self.edges, self.losses, strict=True))

    @cached_property
    def prior(self) -> Array:
        """Logarithms of the weights, (models,)."""
        return np.log(np.asarray(self.weights) / sum(self.weights))


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The state of a pool now: whether capacity is there, for how many hours, and the evidence for each model.

    `evidence` (models,) are discounted log-likelihoods of the observations.
    """

    is_up: bool
    age: float
    evidence: Array

    def weights(self, hazards: Hazards) -> Array:
        """Return the probability of each model, (models,)."""
        odds = hazards.prior + self.evidence
        likely = np.exp(odds - odds.max())
        shares: Array = likely / likely.sum()
        return shares


@dataclass(frozen=True, slots=True)
class Learned:
    """A strategy's view of interruptible capacity: hazards, evidence, and the last known price."""

    hazards: Hazards
    belief: Belief | None = None
    price: UsdPerHour | None = None


def first(hazards: Hazards, *, is_up: bool, age: float) -> Belief:
    """Return the belief at the first look. It assumes that capacity has been there, or away, for `age` hours."""
    return Belief(is_up, age, np.zeros(len(hazards.factors)))


def observe(hazards: Hazards, belief: Belief, *, is_up: bool, hours: float) -> Belief:
    """Return the belief after `hours` more; `is_up` says whether capacity was there at their end."""
    rates = hazards.loss_rates if belief.is_up else hazards.return_rates
    expected = rates[hazards.bin(belief.age)] * hours
    has_changed = is_up is not belief.is_up
    said = np.log(-np.expm1(-expected)) if has_changed else -expected
    kept = math.exp2(-hours / hazards.half_life)
    return Belief(is_up, 0.0 if has_changed else belief.age + hours, belief.evidence * kept + said)


_FACTORS = (0.4, 0.8, 1.6, 3.2)
SHIPPED = Hazards(
    edges=(0.0, 1 / 6, 0.5, 1.0, 2.0, 4.0, 8.0),
    losses=(1.17, 0.875, 0.605, 0.39, 0.271, 0.22, 0.151),
    returns=(1.89, 1.01, 0.661, 0.437, 0.299, 0.286, 0.176),
    factors=tuple((loss, back) for loss in _FACTORS for back in _FACTORS),
    weights=(
        *(0.0381, 0.0439, 0.072, 0.0343),
        *(0.0246, 0.216, 0.0685, 0.0149),
        *(0.031, 0.236, 0.109, 0.015),
        *(0.0395, 0.0248, 0.0245, 0.00855),
    ),
)
"""Fitted by `agent.lab.deadline.hazard_fitting` to recorded availability of AWS: 8 pools of us-west-2 from 2022-10-26,
12 days (collected for "Can't Be Late", NSDI 2024), and 9 zones from 2023-02-15, 11 days (artifact of SkyNomad, NSDI
2027). They are of a cloud, not of a bid market. A pool's own evidence outweighs them within a day or two."""

UNSEEN = Learned(SHIPPED)
"""The belief before any evidence."""

FIRST_AGE_HOURS = 1.0
"""Assumed age of capacity when it is first seen, since nobody saw it begin."""

_DAY = 24.0
_ROUNDING = 1e-9
"""Ages are sums of spans and so inexact. An age at the edge of a bin belongs to the bin that begins there."""
