"""A search that several processes, on several machines, share: Optuna over its own tables in SQLite or PostgreSQL.

Invariants:
1. An unfinished trial does not count. After a kill at any time, the same command continues the study.
2. The number of trials is counted over the whole study, not over a process. A trial that ends after the last one does
   not count, so that all processes get the same result.
3. The storage's password is in no message of ours.
4. The trial of a killed process is tried again; see `heartbeat`.
"""

import hashlib
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from agent.clock import SystemClock
from agent.lab.tuning import heartbeat
from agent.lab.tuning.search_space import Axis

SURELY_WORSE = 1.2816
"""The deviations above zero, of the signed ranks of a trial's parts less those of the best, at which it is given up.

The chance of that for a trial as good as the best is a tenth at each look.
"""
STARTUP_PARTS = 5
"""The fewest parts with a difference before a trial is given up."""
PARTS = "parts"
OPENINGS = 50
OPENING_SECONDS = 0.1
LOCK_SECONDS = 60
"""The longest wait for another process to release the SQLite file."""
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
ASKED_AGAIN = 5
"""The most requests for a new trial if another process ends the given ones first."""
DIGEST = "digest"
SCHEMES = ("sqlite", "postgresql+psycopg")

Objective = Callable[[Mapping[str, float], Callable[[float], bool]], float | None]
"""Scores some places. It reports the score of each part and learns whether to stop; then it returns None."""


class StorageError(Exception):
    """The storage cannot be used. The message says what to do."""

    code = "storage_error"


@dataclass(frozen=True, slots=True)
class Ends:
    """The end of a search: after this many trials in the study, or this many without a better one."""

    trials: int
    patience: int

    def closing(self, finished: Sequence[FrozenTrial]) -> tuple[list[FrozenTrial], str | None]:
        """Return the trials that count, in order of their end, and the reason to end the search, or None."""
        best, since, counted = float("inf"), 0, list[FrozenTrial]()
        for trial in sorted(finished, key=_finished_at):
            is_better = trial.state is TrialState.COMPLETE and trial.value is not None and trial.value < best
            best, since = (trial.value or 0.0, 0) if is_better else (best, since + 1)
            counted.append(trial)
            if len(counted) >= self.trials:
                return counted, "trials"
            if since >= self.patience:
                return counted, "patience"
        return counted, None


@dataclass(frozen=True, slots=True)
class Trial:
    """A finished trial: its places, its score (None if it was stopped), its partial scores."""

    number: int
    state: str
    places: Mapping[str, float]
    score: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """The state of a study: its best places and their score, why the search ended, its trials."""

    places: Mapping[str, float]
    score: float
    ended: str
    trials: tuple[Trial, ...]


class _ByNumber(BaseSampler):
    """A separate sampler for each trial, seeded by the trial's number.

    Equal seeds repeat a study of one process, and processes that share one do not try the same places.
    """

    def __init__(self, seed: int, searched: Sequence[Axis]) -> None:
        self._seed, self._startup = seed, max(10, 2 * len(searched))
        self._one: BaseSampler = TPESampler(seed=seed)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        seed = int.from_bytes(hashlib.sha256(f"{self._seed}/{trial.number}".encode()).digest()[:4])
        self._one = TPESampler(seed=seed, n_startup_trials=self._startup)
        self._one.before_trial(study, trial)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._one.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._one.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 - as in the class it stands for
        return self._one.sample_independent(study, trial, param_name, param_distribution)


def shown(url: str) -> str:
    """Return a storage's address without its user and password."""
    return re.sub(r"//[^/]*@", "//", url).partition("?")[0]


def opened(url: str) -> optuna.storages.RDBStorage:
    """Return the storage, with its tables created.

    Raises:
        StorageError: the address is invalid, or nothing answers there.
    """
    if urlsplit(url).scheme not in SCHEMES:
        raise StorageError("a storage is sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with _translated(url):
        for _ in range(OPENINGS - 1):
            try:
                return _opened(url)
            except Exception as error:
                # A table that another process creates at the same time counts as existing.
                if "exist" not in str(error) and "UNIQUE" not in str(error) and "locked" not in str(error):
                    raise
                threading.Event().wait(OPENING_SECONDS)
        return _opened(url)


def _opened(url: str) -> optuna.storages.RDBStorage:
    options: dict[str, Any] = {"connect_args": {"timeout": LOCK_SECONDS}} if url.startswith("sqlite") else {}
    return heartbeat.storage(url, options)


@contextmanager
def _using(url: str) -> Iterator[optuna.storages.RDBStorage]:
    """Open the storage, and close its connections at the end."""
    storage = opened(url)
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


@contextmanager
def _translated(url: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # A driver's message may repeat the address, with its password.
        is_theirs = type(error).__module__.startswith(("sqlalchemy", "psycopg"))
        if not is_theirs and not isinstance(error, StorageInternalError):
            raise
        sentence = f"{shown(url)} cannot be used ({type(error).__name__}); is it there, and may this user write to it?"
        raise StorageError(sentence) from None


@dataclass(frozen=True, slots=True)
class Shared:
    """The identity of a study: its storage, its name, the digest of its data, its axes, its sampler's seed."""

    url: str
    name: str
    digest: str
    searched: tuple[Axis, ...]
    seed: int
    others: tuple[Mapping[str, float], ...] = ()
    """Numbers by key to try after the shipped ones."""


def search(shared: Shared, objective: Objective, ends: Ends) -> Found:
    """Take part in a study until it ends, and return its result.

    Raises:
        StorageError: the storage cannot be used, or the study of that name is of other data.
    """
    with _translated(shared.url), _using(shared.url) as storage:
        study = _joined(shared, storage)
        while ends.closing(_finished(study))[1] is None:
            heartbeat.requeue_stale(study)
            _try(study, storage, shared.searched, objective)
        _await_others(study)
        counted, why = ends.closing(_finished(study))
        return _found(counted, shared.searched, why or "")


def past(url: str, name: str) -> dict[str, tuple[Trial, ...]]:
    """Return the trials of the study of that name and of those below it (a search has one for each fold), by name.

    Raises:
        StorageError: the storage cannot be used, or has no study of that name.
    """
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        raise StorageError(f"{shown(url)}: there is no such file; name the --storage that gpubid lab tune was given")
    with _translated(url), _using(url) as storage:
        names = [each for each in optuna.get_all_study_names(storage) if f"{each}/".startswith(f"{name}/")]
        if not names:
            raise StorageError(f"{shown(url)} has no study {name!r}; gpubid lab tune --json prints its name")
        studies = {each: optuna.load_study(study_name=each, storage=storage) for each in sorted(names)}
        return {name: _listed(_finished(each)) for name, each in studies.items()}


def _joined(shared: Shared, storage: optuna.storages.RDBStorage) -> optuna.Study:
    study = optuna.create_study(
        storage=storage,
        study_name=shared.name,
        load_if_exists=True,
        direction="minimize",
        sampler=_ByNumber(shared.seed, shared.searched),
        pruner=optuna.pruners.NopPruner(),  # what is told is compared here, part by part
    )
    if study.user_attrs.get(DIGEST, shared.digest) != shared.digest:
        raise StorageError(f"the study {shared.name} is of other cases or numbers; name another with --study")
    study.set_user_attr(DIGEST, shared.digest)
    # The shipped numbers are tried first, and the others must beat them.
    for numbers in ({axis.key: axis.shipped for axis in shared.searched}, *shared.others):
        places = {axis.key: _given(axis, numbers[axis.key]) for axis in shared.searched}
        study.enqueue_trial(places, skip_if_exists=True)
    return study


def _given(axis: Axis, number: float) -> Any:  # noqa: ANN401 - a switch or a place
    return bool(number) if axis.of is bool else axis.place(number)


def _try(
    study: optuna.Study, storage: optuna.storages.RDBStorage, searched: Sequence[Axis], objective: Objective
) -> None:
    spread: dict[str, BaseDistribution] = {
        axis.key: CategoricalDistribution((False, True)) if axis.of is bool else FloatDistribution(0.0, 1.0)
        for axis in searched
    }
    trial = _asked(study, spread)
    best = _best_parts(study)
    reported: list[float] = []

    def tell(score: float) -> bool:
        reported.append(score)
        return is_worse(reported, best[: len(reported)])

    try:
        with heartbeat.beating(storage, trial):
            score = objective({key: float(value) for key, value in trial.params.items()}, tell)
    except BaseException:
        study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
        raise
    # Another process ended the trial if this one slept for too long. Then its numbers are tried again there.
    with suppress(UpdateFinishedTrialError):
        _end(study, trial, score, reported)


def _end(study: optuna.Study, trial: optuna.Trial, score: float | None, reported: Sequence[float]) -> None:
    if score is not None:
        trial.set_user_attr(PARTS, reported)
        study.tell(trial, score, skip_if_finished=True)
        return
    if reported:
        trial.report(sum(reported) / len(reported), len(reported))
    study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)


def _asked(study: optuna.Study, spread: dict[str, BaseDistribution]) -> optuna.Trial:
    """Return the next trial. Another process may begin and end a waiting trial during the request."""
    with heartbeat.quietly():
        for _ in range(ASKED_AGAIN):
            with suppress(UpdateFinishedTrialError):
                return study.ask(spread)
        return study.ask(spread)


def _best_parts(study: optuna.Study) -> list[float]:
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    best = min(complete, key=lambda each: each.value if each.value is not None else float("inf"), default=None)
    return list(best.user_attrs.get(PARTS, [])) if best is not None else []


def is_worse(mine: Sequence[float], best: Sequence[float]) -> bool:
    """Return whether scores are significantly above the best's of the same parts: Wilcoxon's signed ranks, one-sided.

    Source: F. Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1(6), 1945; its normal limit.
    """
    if len(best) != len(mine):
        return False
    differences = np.array(mine) - np.array(best)
    differences = differences[differences != 0]
    count = len(differences)
    if count < STARTUP_PARTS:
        return False
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1
    above = float(ranks[differences > 0].sum()) - count * (count + 1) / 4
    return above / math.sqrt(count * (count + 1) * (2 * count + 1) / 24) > SURELY_WORSE


def _finished(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=FINISHED)


def _await_others(study: optuna.Study) -> None:
    """Wait for trials of other processes: a trial that ended just before the last may still be unwritten, and counts.

    A trial that takes twice as long as any other counts as killed.
    """
    took = [each.duration.total_seconds() for each in _finished(study) if each.duration is not None]
    longest, clock = 2 * max(took, default=0.0) + OPENING_SECONDS, SystemClock()
    while any(
        each.datetime_start is not None and clock.now().timestamp() - each.datetime_start.timestamp() < longest
        for each in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    ):
        threading.Event().wait(OPENING_SECONDS)


def _finished_at(trial: FrozenTrial) -> tuple[float, int]:
    at = trial.datetime_complete
    return at.timestamp() if at is not None else math.inf, trial.number


def _found(counted: Sequence[FrozenTrial], searched: Sequence[Axis], why: str) -> Found:
    listed = _listed(counted)
    complete = [each for each in listed if each.state == "complete" and each.score is not None]
    if not complete:
        return Found({axis.key: float(_given(axis, axis.shipped)) for axis in searched}, float("inf"), why, listed)
    best = min(complete, key=lambda each: (each.score, each.number))
    return Found(best.places, best.score or 0.0, why, listed)


def _listed(trials: Sequence[FrozenTrial]) -> tuple[Trial, ...]:
    return tuple(
        Trial(each.number, each.state.name.lower(), {k: float(v) for k, v in each.params.items()}, each.value)
        for each in sorted(trials, key=lambda each: each.number)
    )
