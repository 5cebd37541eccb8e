"""The search for the numbers of a strategy: fitted on earlier cases, scored on later ones, beside the shipped numbers.

Invariants:
1. The reported score is of cases that were not used for the fit.
2. A late run is never free: it counts `LATE_TIMES` its cost, unless its cost already includes the price of lateness.
3. The numbers to write are searched on all cases. Their reported score is that of the same search on held-out parts.
"""

import hashlib
import json
import multiprocessing
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import pydantic

from agent.decide.strategy import Params
from agent.lab.bench import interval
from agent.lab.bench.comparison import Case, Score, Tunable
from agent.lab.traces import walk_forward
from agent.lab.tuning import search_space, study

LATE_TIMES = 10.0
PARTS = 20
"""The number of parts into which the cases are divided. After each part a trial may be stopped."""
PROBES = 8
"""The number of cases to try. A number that changes none of them, at either bound, is left out of the search."""
ALL = "all"


@dataclass(frozen=True, slots=True)
class Order:
    """The settings of a search: folds, the end of a study, processes, and the study's storage."""

    storage: str
    ends: study.Ends
    folds: int = 2
    seed: int = 0
    workers: int = 1
    name: str | None = None
    keys: tuple[str, ...] | None = None
    beside: Params | None = None
    """Numbers to try after the first, and to compare with the result: the shipped ones if the start is an own file."""


@dataclass(frozen=True, slots=True)
class Side:
    """The result of some cases: mean dollars and late runs."""

    mean: float
    late: int


@dataclass(frozen=True, slots=True)
class Compared:
    """Tuned numbers beside other ones on the same cases: mean difference and its paired, clustered interval."""

    cases: int
    shipped: Side
    tuned: Side
    difference: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Part:
    """A study: the cases of its fit, its numbers, and their results on these cases and on the held-out ones."""

    fold: walk_forward.Fold
    changed: Mapping[str, search_space.Value]
    found: study.Found
    fitted: Compared
    held: Compared | None


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of a search. `params` are the numbers to write. `held` is over all held-out parts.

    `beside` compares the same parts with the other numbers of the order, or is None if the order has none.
    """

    strategy: str
    study: str
    shipped: Params
    params: Params
    changed: Mapping[str, search_space.Value]
    inert: tuple[str, ...]
    parts: tuple[Part, ...]
    whole: Part
    held: Compared
    about: Mapping[str, object]
    beside: Compared | None = None


@dataclass(frozen=True, slots=True)
class _Search:
    """One study, as a plain value that is sent to other processes."""

    problem: Tunable
    strategy: str
    shipped: Params
    searched: tuple[search_space.Axis, ...]
    places: tuple[int, ...]
    name: str
    digest: str
    order: Order

    def run(self) -> study.Found:
        """Take part in the study until it ends."""
        order = self.order
        others = [] if order.beside is None else [search_space.numbers(self.searched, order.beside)]
        shared = study.Shared(order.storage, self.name, self.digest, self.searched, order.seed, tuple(others))
        return study.search(shared, self._objective, order.ends)

    def _objective(self, places: Mapping[str, float], tell: Callable[[float], bool]) -> float | None:
        try:
            params = search_space.applied(self.shipped, search_space.values(self.searched, places))
        except pydantic.ValidationError:
            return None
        problem = self.problem.with_params(self.strategy, params)
        cases, total = problem.cases(), 0.0
        for part in _dealt(self.places):
            losses = [_loss(problem.score(self.strategy, cases[place])) for place in part]
            total += sum(losses)
            if tell(sum(losses) / len(losses)):
                return None
        return total / len(self.places)


def tune(problem: Tunable, strategy: str, order: Order) -> Tuning:
    """Return the result of a search for a strategy's numbers on a problem.

    Raises:
        ValueError: the strategy has no numbers here, a key cannot be searched, or the cases span too little time.
        StorageError: the study's storage cannot be used.
    """
    shipped = problem.params(strategy)
    if shipped is None:
        raise ValueError(f"{strategy} has no numbers in {problem.name}: there is nothing to tune")
    cases = problem.cases()
    parts = walk_forward.forward(cases, order.folds)
    searched, inert = _searched(problem, strategy, shipped, parts[0], order)
    digest = _digest(problem, cases, searched)
    name = order.name or f"{problem.name}/{strategy}/{digest}"
    whole = walk_forward.Fold(ALL, tuple(range(len(cases))), (), None)
    done = [
        _part(_Search(problem, strategy, shipped, searched, fold.fit, f"{name}/{fold.name}", digest, order), fold)
        for fold in (*parts, whole)
    ]
    params = search_space.applied(shipped, done[-1].changed)
    return Tuning(
        strategy=strategy,
        study=name,
        shipped=shipped,
        params=params,
        changed=done[-1].changed,
        inert=inert,
        parts=tuple(done[:-1]),
        whole=done[-1],
        held=_pooled(problem, strategy, shipped, done[:-1], order.seed),
        beside=_beside(problem, strategy, shipped, done[:-1], order),
        about=problem.about(),
    )


def _part(search: _Search, fold: walk_forward.Fold) -> Part:
    problem, trials = search.problem, _shared(search)
    changed = search_space.values(search.searched, trials.places)
    tuned = problem.with_params(search.strategy, search_space.applied(search.shipped, changed))
    seed = search.order.seed
    fitted = _compared(problem, search.strategy, [(tuned, place) for place in fold.fit], seed)
    held = _compared(problem, search.strategy, [(tuned, place) for place in fold.held], seed) if fold.held else None
    return Part(fold, changed, trials, fitted, held)


def _shared(search: _Search) -> study.Found:
    if search.order.workers <= 1:
        return search.run()
    study.opened(search.order.storage)  # tables are made once, before several processes would make them
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(search.order.workers, mp_context=fresh) as pool:
        for each in [pool.submit(search.run) for _ in range(search.order.workers)]:
            each.result()
    return search.run()


def _searched(
    problem: Tunable, strategy: str, shipped: Params, first: walk_forward.Fold, order: Order
) -> tuple[tuple[search_space.Axis, ...], tuple[str, ...]]:
    """Return the axes that change anything in this problem, and the keys of those that do not."""
    axes = search_space.axes(shipped, order.keys)
    every = max(1, len(first.fit) // PROBES)
    places = first.fit[::every][:PROBES]

    def cost(changed: Mapping[str, search_space.Value]) -> list[Score] | None:
        try:
            params = search_space.applied(shipped, changed)
        except pydantic.ValidationError:
            return None
        return _scores(problem.with_params(strategy, params), strategy, places)

    # A number may matter only with another setting of a switch, so each switch is tried both ways.
    switches = [{axis.key: axis.value(1 - axis.shipped)} for axis in axes if axis.of is bool]
    usual = [(given, cost(given)) for given in ({}, *switches)]

    def changes(axis: search_space.Axis) -> bool:
        tries = ((given, base, end) for given, base in usual if axis.key not in given for end in (0.0, 1.0))
        return any(cost({**given, axis.key: axis.value(end)}) != base for given, base, end in tries)

    kept = tuple(axis for axis in axes if changes(axis))
    if not kept:
        tried = ", ".join(axis.key for axis in axes)
        raise ValueError(f"{tried}: no other number changes anything in these runs of {problem.name}; name other keys")
    return kept, tuple(axis.key for axis in axes if axis not in kept)


def _beside(problem: Tunable, strategy: str, shipped: Params, parts: Sequence[Part], order: Order) -> Compared | None:
    if order.beside is None:
        return None
    pairs = _held(problem, strategy, shipped, parts)
    return _compared(problem.with_params(strategy, order.beside), strategy, pairs, order.seed)


def _pooled(problem: Tunable, strategy: str, shipped: Params, parts: Sequence[Part], seed: int) -> Compared:
    return _compared(problem, strategy, _held(problem, strategy, shipped, parts), seed)


def _held(problem: Tunable, strategy: str, shipped: Params, parts: Sequence[Part]) -> list[tuple[Tunable, int]]:
    """Return every held-out case with the problem that has the numbers of the fit before it."""
    return [
        (problem.with_params(strategy, search_space.applied(shipped, part.changed)), place)
        for part in parts
        for place in part.fold.held
    ]


def _compared(problem: Tunable, strategy: str, pairs: Sequence[tuple[Tunable, int]], seed: int) -> Compared:
    """Return the comparison of each case under the shipped numbers with the same case under its own."""
    cases = problem.cases()
    theirs = [problem.score(strategy, cases[place]) for _, place in pairs]
    mine = [tuned.score(strategy, cases[place]) for tuned, place in pairs]
    differences = [one.cost - other.cost for one, other in zip(mine, theirs, strict=True)]
    clusters = [cases[place].cluster for _, place in pairs]
    sure = interval.clustered(differences, clusters, seed)
    return Compared(len(pairs), _side(theirs), _side(mine), sum(differences) / len(differences), sure)


def _scores(problem: Tunable, strategy: str, places: Sequence[int]) -> list[Score]:
    cases = problem.cases()
    return [problem.score(strategy, cases[place]) for place in places]


def _side(scores: Sequence[Score]) -> Side:
    return Side(sum(each.cost for each in scores) / len(scores), sum(each.is_late for each in scores))


def _loss(score: Score) -> float:
    return score.cost * LATE_TIMES if score.is_late and not score.is_priced else score.cost


def _dealt(places: Sequence[int]) -> list[list[int]]:
    """Return the indices in parts that each resemble the whole. Every process of a study gets the same parts."""
    shuffled = list(places)
    random.Random(len(shuffled)).shuffle(shuffled)
    count = min(PARTS, len(shuffled))
    return [shuffled[first::count] for first in range(count)]


def _digest(problem: Tunable, cases: Sequence[Case], searched: Sequence[search_space.Axis]) -> str:
    """Return the digest of the data and the axes. Machines with the same digest share the study."""
    text = json.dumps([problem.about(), [case.key for case in cases], [repr(axis) for axis in searched]], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
