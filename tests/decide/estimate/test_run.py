"""The arithmetic under an estimate, against closed forms and against runs that are played out."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.estimate import checkpoints, outcome_spread
from agent.decide.estimate.run import Run, losses
from agent.decide.pricing import gamma_distribution


def played(run: Run, hazard: float, draw: random.Random) -> tuple[int, float]:
    """Play one run out: its interruptions and its running hours."""
    number, hours = 0, 0.0
    for _ in range(round(run.stretches)):
        need = run.stretch
        while (life := draw.expovariate(hazard)) < need:
            number, hours, need = number + 1, hours + life, run.restore + run.stretch
        hours += need
    return number, hours


@pytest.mark.parametrize(
    ("run", "hazard"), [(Run(12, 0.25, 0.02, 0.1), 0.3), (Run(8, 8, 0, 0.5), 0.1), (Run(3, 1, 0.1, 0.2), 1.0)]
)
def test_a_run_costs_what_playing_it_out_costs(run: Run, hazard: float) -> None:
    draw = random.Random(7)
    tries = [played(run, hazard, draw) for _ in range(8000)]
    found = losses(run, hazard)
    assert found is not None
    mean = sum(number for number, _ in tries) / len(tries)
    variance = sum((number - mean) ** 2 for number, _ in tries) / len(tries)
    hours = sum(spent for _, spent in tries) / len(tries)
    assert found.number == pytest.approx(mean, rel=0.05)
    assert found.number_variance == pytest.approx(variance, rel=0.12)
    assert found.none == pytest.approx(sum(number == 0 for number, _ in tries) / len(tries), abs=0.02)
    assert run.least_hours - run.restore + found.number * found.hours_each == pytest.approx(hours, rel=0.02)


@pytest.mark.parametrize(("run", "hazard"), [(Run(12, 0.25, 0.02, 0.1), 0.3), (Run(8, 8, 0, 0.5), 0.1)])
def test_nine_in_ten_played_runs_stay_under_the_90th_percentile(run: Run, hazard: float) -> None:
    draw = random.Random(11)
    found = losses(run, hazard)
    assert found is not None
    variance = found.number * found.hours_each_variance + found.number_variance * found.hours_each**2
    case = outcome_spread.Case(run.least_hours - run.restore, found.number * found.hours_each, variance, found.none)
    bound = outcome_spread.quantile([case])
    assert bound is not None
    tries = [played(run, hazard, draw)[1] for _ in range(8000)]
    assert sum(hours <= bound for hours in tries) / len(tries) == pytest.approx(0.9, abs=0.025)


def test_without_interruptions_a_run_takes_what_it_takes() -> None:
    found = losses(Run(10, 1, 0.1, 0.2), 0.0)
    assert found is not None
    assert (found.number, found.none) == (0.0, 1.0)
    assert Run(10, 1, 0.1, 0.2).least_hours == pytest.approx(11.2)


def test_a_run_that_never_ends_has_no_figures() -> None:
    assert losses(Run(5000, 5000), 0.15) is None
    assert outcome_spread.mean([None, outcome_spread.Case(1.0)]) is None
    assert outcome_spread.quantile([None, outcome_spread.Case(1.0)]) is None


@given(st.floats(0.01, 2.0), st.floats(0.01, 1.0))
def test_more_interruptions_lose_more(hazard: float, more: float) -> None:
    run = Run(24, 0.5, 0.01, 0.1)
    calm, rough = losses(run, hazard), losses(run, hazard + more)
    assert calm is not None
    assert rough is not None
    assert calm.number < rough.number
    assert calm.number * calm.hours_each < rough.number * rough.hours_each


def test_young_and_daly_as_published() -> None:
    # A checkpoint of 5 minutes and an interruption a day: sqrt(2 x 5/60 x 24) = 2 h.
    assert checkpoints.young(5 / 60, 24) == pytest.approx(2.0)
    # Daly: 2 (1 + sqrt(r)/3 + r/9) - 5/60 with r = (5/60)/48 = 1/576: 2 (1 + 1/72 + 1/5184) - 1/12.
    assert checkpoints.daly(5 / 60, 24) == pytest.approx(2 * (1 + 1 / 72 + 1 / 5184) - 1 / 12)
    assert checkpoints.daly(3.0, 1.0) == 1.0


@pytest.mark.parametrize("hazard", [0.02, 0.1, 0.5])
def test_no_other_interval_beats_dalys_by_much(hazard: float) -> None:
    def hours(interval: float) -> float:
        run = Run(1000, interval, 0.02, 0.05)
        found = losses(run, hazard)
        assert found is not None
        return run.least_hours + found.number * found.hours_each

    best = hours(checkpoints.daly(0.02, 1 / hazard))
    assert all(best <= hours(checkpoints.daly(0.02, 1 / hazard) * factor) * 1.001 for factor in (0.5, 0.7, 1.4, 2.0))


def test_cells_of_a_gamma_have_its_mean_and_rise() -> None:
    cells = gamma_distribution.Gamma(1.8, 12.0).cells(16)
    assert sum(cells) / 16 == pytest.approx(0.15)
    assert list(cells) == sorted(cells)


def test_the_gamma_is_the_exponential_and_the_erlang_where_it_should_be() -> None:
    assert gamma_distribution.below(1.0, 2.0) == pytest.approx(-math.expm1(-2.0))
    assert gamma_distribution.below(3.0, 2.0) == pytest.approx(1 - math.exp(-2.0) * (1 + 2 + 2))
    assert gamma_distribution.below(400.0, 400.0) == pytest.approx(0.5066, abs=1e-3)
    assert gamma_distribution.below(2.0, -1.0) == 0.0
    assert gamma_distribution.below(0.5, 1e4) == pytest.approx(1.0)
