"""Runs of 48 hours over one pool, each beside a bare loop over the same ticks; and the tables of `deadline`.

The pool is drawn here: a two-state chain with about four losses in ten hours and fixed prices; nothing recorded.
"""

from collections.abc import Callable

import numpy as np

from agent.decide.deadline import hazards, single_pool_policy
from agent.lab.bench import blocks
from agent.lab.deadline import deadline_baselines, deadline_jobs, learning_rule
from agent.lab.deadline.deadline_jobs import Setting
from agent.lab.deadline.one_pool import OnePool
from agent.lab.jobs import offline_optimum, tick_engine
from agent.lab.jobs.job_terms import Course, JobCase, Window
from tests.bench import report

SETTING = Setting.of_hours(48, 70, 0.2)
"""It runs for two thirds of its windows' ticks, the bound over all of them."""
SEED = 6
LOSS, RETURN = 0.4, 0.3
"""Chances an hour."""
GAPS = (600, 195)
MOST_RULE, MOST_LEARNER, MOST_TABLES = 0.050, 0.100, 2.0
MOST_BOUND = {600: 0.020, 195: 0.200}
ROUNDS = 9


def measure() -> bool:
    """Print each run, in milliseconds of CPU and as a multiple of the bare loop; return whether all bounds hold."""
    print(f"one run in the lab: {SETTING.work / 3600:g} h of work, {SETTING.allowed / 3600:g} h allowed, seed {SEED}")
    verdicts = [_at(drawn(gap)) for gap in GAPS]
    return all(verdicts)


def drawn(gap: int) -> JobCase:
    """Return a job over a pool that comes and goes."""
    count = SETTING.allowed // gap + blocks.SPARE_TICKS
    lots = np.random.default_rng(SEED).random(count)
    is_up = [True]
    for lot in lots[1:]:
        changes = bool(lot < (LOSS if is_up[-1] else RETURN) * gap / 3600)
        is_up.append(is_up[-1] is not changes)
    course = Course(np.array(is_up)[:, None], np.full((count, 1), 0.9731), np.full((count, 1), 3.06))
    return deadline_jobs.case(Window(("drawn",), gap, 0, course), SETTING)


def _at(over: JobCase) -> bool:
    gap = over.terms.tick
    verdicts = [
        _against(f"uniform_progress at {gap} s", over, lambda: _progress(over), MOST_RULE),
        _learner(over),
        _against(f"exact optimum at {gap} s", over, lambda: offline_optimum.cost(over), MOST_BOUND[gap]),
    ]
    return all(verdicts)


def _learner(over: JobCase) -> bool:
    """Measure `deadline`: its tables once, then runs that find them in the cache."""
    gap = over.terms.tick

    def build() -> None:
        single_pool_policy.tables.clear()
        _learn(over)

    built, _, _ = report.against(1, build, lambda: _bare(over))
    name = f"deadline at {gap} s, the run that builds its tables"
    first = report.line(name, f"{built * 1000:.0f} ms", f"at most {MOST_TABLES:.0f} s", holds=built <= MOST_TABLES)
    run = _against(f"deadline at {gap} s", over, lambda: _learn(over), MOST_LEARNER)
    return first and run


def _against(name: str, over: JobCase, ours: Callable[[], object], most: float) -> bool:
    seconds, bare, _ = report.against(ROUNDS, ours, lambda: [_bare(over) for _ in range(BARE)])
    figure = f"{seconds * 1000:.1f} ms; {seconds / (bare / BARE):,.0f} times the bare loop"
    return report.line(name, figure, f"at most {most * 1000:.0f} ms", holds=seconds <= most)


def _progress(over: JobCase) -> float:
    return tick_engine.play(over, deadline_baselines.policy("uniform_progress", None, over.terms)).cost


def _learn(over: JobCase) -> float:
    return tick_engine.play(over, OnePool(learning_rule.rule(hazards.SHIPPED))).cost


def _bare(over: JobCase) -> float:
    """Add up what every tick with capacity costs, and nothing else."""
    dollars = 0.0
    for is_up, prices, _ in over.course.rows:
        if is_up[0]:
            dollars += prices[0] * over.terms.tick / 3600
    return dollars


BARE = 200
"""Bare loops in one measurement: one alone is too short for the clock."""
