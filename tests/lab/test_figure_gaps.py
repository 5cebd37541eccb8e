"""Differences of further figures: means case by case, and rates of sums, each with its interval."""

import math
from collections.abc import Mapping, Sequence

from agent.lab.bench import figure_gaps

SEEDS = [str(seed) for seed in range(6)]


class Priced:
    """A problem with one compared figure and one rate."""

    def compared(self) -> Sequence[str]:
        return ("hours",)

    def rates(self) -> Mapping[str, tuple[str, str]]:
        return {"per hour": ("dollars", "hours")}


def days(hours: Sequence[float], rate: float) -> list[dict[str, float]]:
    return [{"hours": each, "dollars": rate * each} for each in hours]


def test_a_rate_is_of_sums_so_that_a_short_day_counts_little() -> None:
    mine = [{"hours": 23.0, "dollars": 23.0}, {"hours": 1.0, "dollars": 25.0}]
    assert figure_gaps.rates(Priced(), mine) == {"per hour": 2.0}
    assert figure_gaps.rates(Priced(), days([0.0], 1.0)) == {}
    assert figure_gaps.rates(object(), mine) == {}


def test_an_even_difference_has_no_width_and_a_wild_one_covers_zero() -> None:
    even = figure_gaps.gaps(Priced(), days([5.0] * 6, 2.0), days([4.0] * 6, 3.0), SEEDS, 0)
    assert even["hours"] == figure_gaps.Gap(1.0, (1.0, 1.0))
    assert even["per hour"] == figure_gaps.Gap(-1.0, (-1.0, -1.0))
    wild = figure_gaps.gaps(Priced(), days([1, 9, 1, 9, 1, 9], 2.0), days([5.0] * 6, 2.0), SEEDS, 0)
    low, high = wild["hours"].interval
    assert low < 0 < high
    assert wild["per hour"].interval == (0.0, 0.0)


def test_few_clusters_or_a_draw_without_hours_give_no_interval() -> None:
    few = figure_gaps.gaps(Priced(), days([5.0] * 4, 2.0), days([4.0] * 4, 3.0), SEEDS[:4], 0)
    assert few["per hour"].interval == (-math.inf, math.inf)
    idle = figure_gaps.gaps(Priced(), days([5.0] * 6, 2.0), days([0, 0, 0, 0, 0, 4.0], 3.0), SEEDS, 0)
    assert idle["per hour"].interval == (-math.inf, math.inf)
    assert "not known" in idle["per hour"].text
