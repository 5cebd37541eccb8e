"""The plots of a report, in the order of a reader's questions: cost, certainty, settings, and one run."""

from collections.abc import Iterator, Sequence

from agent.lab.bench.comparison import Case, NotComparable, Problem
from agent.lab.bench.result_table import Table
from agent.lab.engine import run_timeline
from agent.lab.page import bidding_day, cost_scatter, costs, groups, run_page, saved_table, warm_slots
from agent.lab.page.html import Plot

NOTHING = "settings side by side: there is one setting alone, or one strategy, or too many settings to read"


def of_saved(tables: Sequence[saved_table.Table]) -> Iterator[Plot | str]:
    """Yield the plots that need only tables, and a sentence for each missing plot."""
    for place, table in enumerate(tables):
        of = f": {table.about.get('climate', place + 1)}" if len(tables) > 1 else ""
        yield costs.plot(table, f"costs-{place}", of) or f"costs{of}: the file has no percentiles; print it again"
        drawn = cost_scatter.plot(table, f"trade-{place}", of)
        yield drawn or f"cost against lateness{of}: no strategy differs from another in it"


def must_have(problem: Problem, key: str) -> None:
    """Raise if a problem has no run of that name.

    Raises:
        NotComparable: its message has names of runs.
    """
    keys = [each.key for each in problem.cases()]
    if key not in keys:
        called = f"{keys[0]!r} to {keys[-1]!r}" if keys else "nothing: no window fits"
        raise NotComparable("no_case", f"there is no run {key!r}; the {len(keys):,} of them are called {called}")


def of_problem(problem: Problem, table: Table, case: str | None, name: str) -> Iterator[Plot | str]:
    """Yield the other plots of a problem that was just run. `case` may be a run of another part."""
    cases = problem.cases()
    by_strategy = {row.strategy: row.costs for row in table.rows}
    against = problem.optimum if problem.optimum in by_strategy else table.baseline
    names = [getattr(each, "group", "") for each in cases]
    if against in by_strategy:
        yield groups.plot(names, by_strategy, against, f"groups-{name}") or NOTHING
    if not isinstance(problem, run_timeline.HasTimeline):
        yield f"one run's timeline: {problem.name} cannot show a run tick by tick"
        return
    chosen = _typical(cases, by_strategy.get(table.baseline)) if case is None else _named(cases, case)
    if chosen is None:
        yield f"one run's timeline{_part(problem)}: the run that was named, {case}, is of another table"
        return
    timeline = problem.timeline([row.strategy for row in table.rows], chosen)
    yield _drawn(timeline, f"run-{name}")


def _drawn(timeline: run_timeline.Timeline | run_timeline.Kept | run_timeline.Auction, name: str) -> Plot:
    if isinstance(timeline, run_timeline.Auction):
        return bidding_day.plot(timeline, name)
    return warm_slots.plot(timeline, name) if isinstance(timeline, run_timeline.Kept) else run_page.plot(timeline, name)


def _typical(cases: Sequence[Case], dollars: Sequence[float] | None) -> Case:
    """Return the case of median cost under the baseline."""
    if dollars is None:
        return cases[0]
    return cases[sorted(range(len(cases)), key=lambda place: (dollars[place], place))[len(cases) // 2]]


def _named(cases: Sequence[Case], key: str) -> Case | None:
    return next((each for each in cases if each.key == key), None)


def _part(problem: Problem) -> str:
    """Return the name of a part."""
    climate = problem.about().get("climate")
    return "" if climate is None else f" of {climate}"
