"""A pool whose capacity comes and goes at every look: work is not started there for ever, and time costs little."""

import numpy as np

from agent.decide.deadline import regimes
from agent.domain.market.tenure import Tenure
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import HOUR, Course, JobCase, Terms, Window
from agent.lab.pools import own_kernel

TICK = 600
PRICE, ASK = 0.9731, 3.06
LOOK = TICK / HOUR


def job(hours: float) -> JobCase:
    """Return 16 hours of work within some hours, in two pools that have capacity at each third look, by turns."""
    terms = Terms(("east_1", "west_1"), TICK, 16 * HOUR, round(hours * HOUR), 720, np.zeros((2, 2)))
    ticks = np.arange(terms.ticks + 24)
    up = np.stack([ticks % 3 == 0, ticks % 3 == 1], axis=1)
    course = Course(up, np.full(up.shape, PRICE), np.full(up.shape, ASK))
    return JobCase("flicker", "one", "flicker", terms, Window(terms.pools, TICK, 0, course))


def run(hours: float, known: regimes.Regimes) -> tick_engine.Run:
    case = job(hours)
    return tick_engine.play(case, own_kernel.Wander(case.terms, known=known))


def test_three_spells_that_end_at_the_next_look_are_called_flicker() -> None:
    belief = regimes.first(regimes.SHIPPED, is_up=True)
    for _ in range(3):
        for is_up in (False, True):
            belief = regimes.observe(regimes.SHIPPED, belief, is_up=is_up, hours=LOOK)
    assert int(belief.shares.argmax()) == regimes.SHIPPED.count - 1


def test_a_pool_that_stays_is_not_called_flicker() -> None:
    belief = regimes.first(regimes.SHIPPED, is_up=True)
    for _ in range(36):
        belief = regimes.observe(regimes.SHIPPED, belief, is_up=True, hours=LOOK)
    assert belief.shares[-1] < regimes.FLICKER_SHARE


def test_work_is_started_less_often_where_every_start_is_lost_and_costs_less() -> None:
    known, unknown = run(24, regimes.SHIPPED), run(24, regimes.FITTED)
    assert known.starts < unknown.starts
    assert known.cost < unknown.cost


def test_a_day_and_a_half_costs_no_more_than_twenty_hours() -> None:
    before, after = run(20, regimes.SHIPPED), run(36, regimes.SHIPPED)
    assert after.cost <= before.cost
    assert all(Tenure.ON_DEMAND in {choice.tenure for choice in each.choices} for each in (before, after))
