"""Runs of 48 hours over one pool, each beside a bare loop over the same ticks; and the tables of `deadline`.

The pool is drawn here, a two-state chain with about four losses in ten hours and prices that stand; nothing recorded.
"""

from collections.abc import Callable

import numpy as np

from agent.decide.deadline import hazards, single_pool_policy
from agent.lab.bench import blocks
from agent.lab.deadline import deadline_baselines, deadline_ticks, learning, single_pool_optimum
from agent.lab.deadline.deadline_ticks import Rule, Setting
from agent.lab.deadline.window import Window
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


def drawn(gap: int) -> Window:
    """Return a window of a pool that comes and goes."""
    count = SETTING.allowed // gap + blocks.SPARE_TICKS
    lots = np.random.default_rng(SEED).random(count)
    is_up = [True]
    for lot in lots[1:]:
        changes = bool(lot < (LOSS if is_up[-1] else RETURN) * gap / 3600)
        is_up.append(is_up[-1] is not changes)
    return Window("drawn", 0, gap, tuple(is_up), (0.9731,) * count, (3.06,) * count)


def _at(over: Window) -> bool:
    gap = over.gap_seconds
    progress = deadline_baselines.rule("uniform_progress", None)
    verdicts = [
        _against(f"uniform_progress at {gap} s", over, lambda: _run(progress, over), MOST_RULE),
        _learner(over),
        _against(f"exact optimum at {gap} s", over, lambda: single_pool_optimum.cost(over, SETTING), MOST_BOUND[gap]),
    ]
    return all(verdicts)


def _learner(over: Window) -> bool:
    """Measure `deadline`: its tables once, then runs that find them in the cache."""
    gap = over.gap_seconds

    def build() -> None:
        single_pool_policy.tables.clear()
        _run(learning.rule(hazards.SHIPPED), over)

    built, _, _ = report.against(1, build, lambda: _bare(over))
    name = f"deadline at {gap} s, the run that builds its tables"
    first = report.line(name, f"{built * 1000:.0f} ms", f"at most {MOST_TABLES:.0f} s", holds=built <= MOST_TABLES)
    run = _against(f"deadline at {gap} s", over, lambda: _run(learning.rule(hazards.SHIPPED), over), MOST_LEARNER)
    return first and run


def _against(name: str, over: Window, ours: Callable[[], object], most: float) -> bool:
    seconds, bare, _ = report.against(ROUNDS, ours, lambda: [_bare(over) for _ in range(BARE)])
    figure = f"{seconds * 1000:.1f} ms; {seconds / (bare / BARE):,.0f} times the bare loop"
    return report.line(name, figure, f"at most {most * 1000:.0f} ms", holds=seconds <= most)


def _run(rule: Rule, over: Window) -> float:
    return deadline_ticks.run(rule, over, SETTING).dollars


def _bare(over: Window) -> float:
    """Add up what every tick with capacity costs, and nothing else."""
    dollars = 0.0
    for tick, is_up in enumerate(over.is_up):
        if is_up:
            dollars += over.spot_prices[tick] * over.gap_seconds / 3600
    return dollars


BARE = 200
"""Bare loops in one measurement: one alone is too short for the clock."""
