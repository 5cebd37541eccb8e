"""The same case tick by tick through the whole plan() under `hedged` and through the kernel: the same choices."""

import numpy as np
import pytest

from agent.domain.market.tenure import Tenure
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import HOUR, Course, JobCase, Terms, Window
from agent.lab.pools import own_kernel
from tests.lab.planned_pools import ASK, GAP, MARKETS, OVERHEAD, Planned


def drawn(seed: int) -> JobCase:
    lots = np.random.default_rng(seed)
    columns = []
    for _ in MARKETS:
        hours = lots.choice([0.2, 0.5, 1.0, 2.0, 4.0], 40)
        columns.append([bool(at % 2) for at, length in enumerate(hours) for _ in range(max(int(length * 6), 1))][:96])
    up = np.array(columns).T
    up[0] = True  # the bench knows the price of a pool that is away; a market shows it only once it was there
    spot = np.tile([0.25, 0.20], (len(up), 1))
    terms = Terms(MARKETS, GAP, 8 * HOUR, 10 * HOUR, OVERHEAD, np.zeros((2, 2)))
    return JobCase(
        f"{seed}", "cluster", "group", terms, Window(MARKETS, GAP, 0, Course(up, spot, np.full(up.shape, ASK)))
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_whole_plan_chooses_as_the_kernel_does_tick_by_tick(seed: int) -> None:
    case = drawn(seed)
    by_plan = tick_engine.play(case, Planned(case.terms))
    by_kernel = tick_engine.play(case, own_kernel.Wander(case.terms))
    assert by_plan.choices == by_kernel.choices
    assert {choice.tenure for choice in by_kernel.choices} >= {Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND}
    assert not by_plan.is_late(case.terms)
