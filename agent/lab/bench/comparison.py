"""The comparison of strategies: each case of a problem under each strategy, on several workers, and a result table.

Invariants:
1. Every strategy runs the same cases. A difference is always taken case by case.
2. Neither the workers, their number, nor the order of the work changes a figure, wall time apart.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol, Self, runtime_checkable

from agent.clock import SystemClock
from agent.decide.strategy import Params
from agent.lab.bench import figure_gaps, interval
from agent.lab.bench.result_table import Row, Table
from agent.lab.workers.lab_workers import LocalWorkers, Workers

CHUNK = 16
"""Cases that a worker gets at a time: so few that all end at about the same time, and a lost worker loses little."""


class Case(Protocol):
    """One run of a problem: a window and a setting, a day, a seed."""

    @property
    def key(self) -> str:
        """Its name, unique within the problem."""
        ...

    @property
    def cluster(self) -> str:
        """A name shared by cases that are not independent of each other. The bootstrap draws them together."""
        ...


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a case: dollars (or the problem's own figure of merit), lateness, other figures by name."""

    cost: float
    is_late: bool = False
    figures: Mapping[str, float] = field(default_factory=dict)
    is_priced: bool = False
    """Whether a late case's cost includes the price of lateness. Then a search adds nothing."""


class Problem(Protocol):
    """The problem of a comparison. It is a plain value, because it is sent to other processes."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        ...

    @property
    def baseline(self) -> str:
        """The default baseline of the comparison."""
        ...

    @property
    def optimum(self) -> str:
        """The name of the strategy that is the bound."""
        ...

    def cases(self) -> Sequence[Case]:
        """Return every case, always in the same order."""
        ...

    def strategies(self) -> Sequence[str]:
        """Return the names of the strategies that it can run."""
        ...

    def score(self, strategy: str, case: Case) -> Score:
        """Return the result of a case under a strategy."""
        ...

    def about(self) -> Mapping[str, object]:
        """Return the facts that a table must state: data, span, settings, whether it is semi-synthetic."""
        ...

    def digests(self) -> Mapping[str, str]:
        """Return the digest of the numbers of each strategy that has any."""
        ...


@runtime_checkable
class Tunable(Problem, Protocol):
    """A problem that runs strategies on given numbers, so that they can be tuned on it."""

    def params(self, strategy: str) -> Params | None:
        """Return the numbers that a strategy runs on here, or None for one that has none."""
        ...

    def with_params(self, strategy: str, params: Params) -> Self:
        """Return the same problem with the same cases, in which the strategy has these numbers.

        A new name adds an own strategy of the operator: the problem's strategy for numbers of this type, by that name.
        """
        ...


def own(numbers: Mapping[str, Params], shipped: Collection[str]) -> tuple[str, ...]:
    """Return the names of the operator's own strategies among those with numbers."""
    return tuple(name for name in numbers if name not in shipped)


@runtime_checkable
class Spanned(Protocol):
    """A case with a span of time. Problems whose cases are seeds have no such cases."""

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The beginning and end of its data."""
        ...


@runtime_checkable
class Sourced(Protocol):
    """A problem that knows which of its own records were used to fit the numbers of a strategy."""

    def fitted_on(self, strategy: str) -> tuple[str, ...]:
        """Return the names of those records among the ones that it runs on."""
        ...


@runtime_checkable
class Matching(Protocol):
    """A problem with matched strategies: each takes, case by case, another strategy that matches a baseline."""

    def rival(self, strategy: str) -> str | None:
        """Return the baseline that a strategy is matched and compared with, or None for an ordinary strategy."""
        ...

    def made_of(self, strategy: str) -> Sequence[str]:
        """Return the strategies from whose scores a matched one is composed."""
        ...

    def matched(self, strategy: str, scored: Mapping[str, Sequence[Score]]) -> Sequence[Score]:
        """Return the scores of every case under a matched strategy, from the scores of its parts."""
        ...


@runtime_checkable
class Divided(Protocol):
    """A problem of several parts, each with its own table."""

    def parts(self) -> Sequence[Problem]:
        """Return the parts."""
        ...


@dataclass(frozen=True, slots=True)
class _Timed:
    strategy: str
    score: Score
    seconds: float


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some cases of a problem under a strategy."""

    strategy: str
    places: range


@dataclass(frozen=True, slots=True)
class _Scoring:
    """The work of a comparison: the scores of a chunk."""

    def done(self, problem: Problem, chunk: _Chunk) -> list[_Timed]:
        clock, cases = SystemClock(), problem.cases()
        scores = []
        for place in chunk.places:
            began = clock.monotonic()
            score = problem.score(chunk.strategy, cases[place])
            scores.append(_Timed(chunk.strategy, score, clock.monotonic() - began))
        return scores

    def is_true(self, problem: Problem, chunk: _Chunk, scores: Sequence[_Timed]) -> bool:
        score = problem.score(chunk.strategy, problem.cases()[chunk.places[0]])
        # As text, because a score may be no number, and that equals nothing.
        return len(scores) == len(chunk.places) and repr(scores[0].score) == repr(score)


class NotComparable(Exception):
    """The request cannot be compared. The message says what to name instead."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence = code, sentence


OnProgress = Callable[[int, int], None]
"""Receives the number of runs that are done, and the number of all runs."""


def run(
    problem: Problem,
    strategies: Sequence[str],
    *,
    baseline: str | None = None,
    workers: int | Workers = 2,
    seed: int = 0,
    on_progress: OnProgress = lambda _done, _total: None,
) -> Table:
    """Return the table of these strategies. It always includes the bound, for the ratio.

    A number of workers means processes of this machine.

    Raises:
        NotComparable: a strategy is not one of the problem's, or there is no case.
    """
    cases = _cases(problem, {*strategies, *([baseline] if baseline else [])})
    named = list(dict.fromkeys(strategies))
    against = baseline or (problem.baseline if problem.baseline in named else named[0])
    rivals = _rivals(problem, [*named, against])
    needed = _needed(problem, [*named, problem.optimum, against], rivals)
    scored = _score_all(problem, needed, len(cases), workers, on_progress)
    scored |= {name: _matched(problem, name, scored) for name in rivals}
    bound = _mean([each.score.cost for each in scored[problem.optimum]])
    clusters = [case.cluster for case in cases]
    digests = problem.digests()
    figures = {name: [each.score.figures for each in timed] for name, timed in scored.items()}
    rows: list[Row] = []
    for name in named:
        row = _row(name, scored, rivals.get(name, against), clusters, bound, digests.get(name, ""), seed)
        rows.append(_with_figures(problem, row, figures, clusters, seed))
    about, blocks = problem.about(), len(set(clusters))
    return Table(problem.name, len(cases), against, seed, interval.DRAWS, about, tuple(rows), blocks)


def _cases(problem: Problem, named: Collection[str]) -> Sequence[Case]:
    """Return the cases of a problem.

    Raises:
        NotComparable: a named strategy is not one of the problem's, or there is no case.
    """
    unknown = sorted(set(named) - set(problem.strategies()))
    if unknown:
        sentence = f"{problem.name} knows no {', '.join(unknown)}; it knows {', '.join(problem.strategies())}"
        raise NotComparable("no_strategy", sentence)
    cases = problem.cases()
    if not cases:
        raise NotComparable("no_case", "no window fits into these traces; name shorter windows")
    return cases


def _with_figures(
    problem: Problem,
    row: Row,
    figures: Mapping[str, Sequence[Mapping[str, float]]],
    clusters: Sequence[str],
    seed: int,
) -> Row:
    """Return a row with the traces it was fitted on, and with the problem's own figures and their gaps."""
    mine, is_compared = figures[row.strategy], problem.optimum not in {row.strategy, row.against}
    return replace(
        row,
        fitted_on=problem.fitted_on(row.strategy) if isinstance(problem, Sourced) else (),
        figures={**row.figures, **(figure_gaps.overall(problem, mine) if is_compared else {})},
        gaps=figure_gaps.gaps(problem, mine, figures[row.against], clusters, seed)
        if is_compared and row.strategy != row.against
        else {},
    )


def _rivals(problem: Problem, named: Sequence[str]) -> dict[str, str]:
    """Return the baseline of each strategy that is matched with one."""
    if not isinstance(problem, Matching):
        return {}
    found = {name: problem.rival(name) for name in named}
    return {name: rival for name, rival in found.items() if rival is not None}


def _needed(problem: Problem, named: Sequence[str], rivals: Mapping[str, str]) -> list[str]:
    """Return the strategies to run: ordinary ones, and the parts of matched ones."""
    needed = [name for name in named if name not in rivals]
    for name, rival in rivals.items():
        needed += [*(problem.made_of(name) if isinstance(problem, Matching) else ()), rival]
    return list(dict.fromkeys(needed))


def _matched(problem: Problem, name: str, scored: Mapping[str, Sequence[_Timed]]) -> list[_Timed]:
    if not isinstance(problem, Matching):
        return []
    matched = problem.matched(name, {each: [timed.score for timed in found] for each, found in scored.items()})
    return [_Timed(name, score, 0.0) for score in matched]


def _score_all(
    problem: Problem, strategies: Sequence[str], count: int, workers: int | Workers, on_progress: OnProgress
) -> dict[str, list[_Timed]]:
    chunks = [
        _Chunk(name, range(first, min(first + CHUNK, count))) for name in strategies for first in range(0, count, CHUNK)
    ]
    by_strategy: dict[str, list[_Timed]] = {name: [] for name in strategies}
    done = 0
    workers = LocalWorkers(workers) if isinstance(workers, int) else workers
    for scores in workers.map(_Scoring(), problem, chunks):
        for timed in scores:
            by_strategy[timed.strategy].append(timed)
        done += len(scores)
        on_progress(done, count * len(strategies))
    return by_strategy


def _row(
    name: str,
    scored: Mapping[str, Sequence[_Timed]],
    against: str,
    clusters: Sequence[str],
    bound: float,
    digest: str,
    seed: int,
) -> Row:
    mine, theirs = scored[name], scored[against]
    costs = [each.score.cost for each in mine]
    differences = [one.score.cost - other.score.cost for one, other in zip(mine, theirs, strict=True)]
    keys = {key: None for each in mine for key in each.score.figures}
    return Row(
        strategy=name,
        mean_cost=_mean(costs),
        ratio_to_optimum=_mean(costs) / bound if bound > 0 else float("nan"),
        late=sum(each.score.is_late for each in mine),
        difference=_mean(differences),
        interval=interval.clustered(differences, clusters, seed),
        wall_seconds=sum(each.seconds for each in mine),
        digest=digest,
        costs=tuple(costs),
        figures={key: _mean([each.score.figures.get(key, 0.0) for each in mine]) for key in keys},
        against=against,
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
