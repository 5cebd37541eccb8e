"""Jobs over one pool: capacity tick by tick at fixed prices, and rules played over it."""

from collections.abc import Sequence

import numpy as np

from agent.domain.market.tenure import Tenure
from agent.lab.deadline import deadline_jobs
from agent.lab.deadline.deadline_jobs import Setting
from agent.lab.deadline.one_pool import OnePool, Rule
from agent.lab.jobs import tick_engine
from agent.lab.jobs.job_terms import Course, JobCase, Window


def over(is_up: Sequence[bool], gap: int, spot: Sequence[float] | float, on_demand: float) -> Window:
    """Return a window of one pool."""
    up = np.array(is_up, dtype=bool)[:, None]
    prices = np.broadcast_to(np.array(spot, dtype=float), len(up))[:, None]
    return Window(("pool",), gap, 0, Course(up, prices, np.full(up.shape, on_demand)))


def case(is_up: Sequence[bool], setting: Setting, gap: int = 3600, spot: Sequence[float] | float = 1.0) -> JobCase:
    """Return a job over one pool, on demand at 3 $/h."""
    return deadline_jobs.case(over(is_up, gap, spot, 3.0), setting)


def lived(rule: Rule, of: JobCase) -> tick_engine.Run:
    """Return what becomes of a job under a rule."""
    return tick_engine.play(of, OnePool(rule))


def tenures(run: tick_engine.Run) -> tuple[Tenure | None, ...]:
    """Return the tenure in each tick."""
    return tuple(choice.tenure for choice in run.choices)


def scripted(plan: Sequence[Tenure | None]) -> Rule:
    """Return a rule that follows a plan."""
    return lambda at: plan[at.tick] if at.tick < len(plan) else None
