"""How well hazards by age predict recorded pools, and how well those of earlier halves predict the later ones.

They are judged by a belief's prediction of each next look, from a first look on, as in use.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agent.decide.deadline import hazards
from agent.decide.deadline.hazards import Hazards
from agent.lab.deadline import hazard_fitting
from agent.lab.deadline.hazard_fitting import Sight

SCORED_HOURS = 72.0
"""The time after which a judged belief begins again, because a job has no longer history."""
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predictions of beliefs: log-likelihood per pool and day; ends of spells seen and expected.

    Ends are by bin of age, first of spells with capacity, then of those without.
    """

    per_day: float
    seen: tuple[int, ...]
    expected: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fitted:
    """Hazards, their fit to their own pools, and the predictions of later halves by those of the earlier halves.

    `alone` is `later` with one model in place of sixteen.
    """

    known: Hazards
    pools: int
    within: Prediction
    later: Prediction
    alone: Prediction


def fitted(sights: Sequence[Sight]) -> Fitted:
    """Return the hazards of these pools with how well they predict.

    Raises:
        ValueError: nothing changed in these pools or in their earlier halves.
    """
    earlier, later = halves(sights)
    known, before = hazard_fitting.fit(sights), hazard_fitting.fit(earlier)
    return Fitted(known, len(sights), judged(known, sights), judged(before, later), judged(one_model(before), later))


def judged(known: Hazards, sights: Sequence[Sight]) -> Prediction:
    """Return how well beliefs of these hazards predict these pools."""
    likely, days = 0.0, 0.0
    seen, expected = (np.zeros((2, len(known.edges))) for _ in range(2))
    for sight in sights:
        length = max(int(SCORED_HOURS / sight.gap_hours), 2)
        for first in range(0, len(sight.is_up) - 1, length):
            looks = sight.is_up[first : first + length].tolist()
            likely += _followed(known, looks, sight.gap_hours, seen, expected)
            days += (len(looks) - 1) * sight.gap_hours / 24.0
    return Prediction(likely / days, tuple(seen.astype(int).ravel().tolist()), tuple(expected.ravel().tolist()))


def one_model(known: Hazards) -> Hazards:
    """Return the hazards with the mean of their models as the only one."""
    weights = np.asarray(known.weights) / sum(known.weights)
    lost, back = (weights @ np.asarray(known.factors)).tolist()
    return replace(known, factors=((lost, back),), weights=(1.0,))


def halves(sights: Sequence[Sight]) -> tuple[list[Sight], list[Sight]]:
    """Return the earlier and the later half of each pool."""
    middles = [len(sight.is_up) // 2 for sight in sights]
    pairs = list(zip(sights, middles, strict=True))
    return (
        [Sight(sight.is_up[:middle], sight.gap_hours) for sight, middle in pairs],
        [Sight(sight.is_up[middle:], sight.gap_hours) for sight, middle in pairs],
    )


def _followed(known: Hazards, looks: Sequence[bool], gap: float, seen: Array, expected: Array) -> float:
    """Return the log-likelihood of these looks, and count ends of spells by side and bin of age."""
    belief, total = hazards.first(known, is_up=looks[0], age=hazards.FIRST_AGE_HOURS), 0.0
    for is_up in looks[1:]:
        place = (0 if belief.is_up else 1, known.bin(belief.age))
        rates = (known.loss_rates if belief.is_up else known.return_rates)[place[1]]
        ends = float(belief.weights(known) @ -np.expm1(-rates * gap))
        has_ended = is_up is not belief.is_up
        expected[place] += ends
        seen[place] += has_ended
        total += float(np.log(ends if has_ended else 1.0 - ends))
        belief = hazards.observe(known, belief, is_up=is_up, hours=gap)
    return total
