"""Trials of killed processes come back, and a result of a trial that was given away meanwhile is dropped."""

import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import optuna
import pytest
import sqlalchemy
from optuna.trial import FrozenTrial, TrialState

from agent.lab.tuning import heartbeat, study
from agent.lab.tuning.search_space import Axis
from tests.support import postgres

ENDS = study.Ends(3, 9)
HANGS = """
import sys, threading
from tests.lab.test_trial_heartbeat import ENDS, shared
from agent.lab.tuning import study

def hang(places, tell):
    print(*places.values(), flush=True)
    threading.Event().wait()

study.search(shared(sys.argv[1]), hang, ENDS)
"""


def shared(url: str) -> study.Shared:
    axis = Axis("share", float, 0.0, 1.0, 0.25)
    return study.Shared(url, "mine", "digest", (axis,), 0)


def quick(places: Mapping[str, float], tell: object) -> float:
    assert callable(tell)
    return places["share"]


def age(url: str) -> None:
    """Let every sign of life be years old."""
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        changed = connection.execute(
            sqlalchemy.text("UPDATE trial_heartbeats SET heartbeat = :then"),
            {"then": datetime(2020, 1, 1)},  # noqa: DTZ001 - the storage's own column has no zone
        )
        assert changed.rowcount
    engine.dispose()


def trials(url: str) -> list[FrozenTrial]:
    with study._using(url) as storage:
        return optuna.load_study(study_name="mine", storage=storage).get_trials()


def assert_a_killed_trial_comes_back(url: str) -> None:
    hanging = subprocess.Popen([sys.executable, "-c", HANGS, url], stdout=subprocess.PIPE, text=True)
    assert hanging.stdout is not None
    try:
        place = float(hanging.stdout.readline())
    finally:
        hanging.kill()
        hanging.communicate()
    age(url)
    found = study.search(shared(url), quick, ENDS)
    first, again, *others = trials(url)
    assert (first.state, again.state) == (TrialState.FAIL, TrialState.COMPLETE)
    assert first.params == again.params == {"share": place}
    assert {each.state for each in others} == {TrialState.COMPLETE}
    assert len(found.trials) == 3, "the failed one does not count"


@pytest.mark.nightly
def test_the_trial_of_a_killed_process_is_tried_again(tmp_path: Path) -> None:
    assert_a_killed_trial_comes_back(f"sqlite:///{tmp_path}/study.db")


@pytest.mark.nightly
@pytest.mark.skipif(not postgres.is_here(), reason="Debian's postgresql is not installed (make nightly installs it)")
def test_the_trial_of_a_killed_process_is_tried_again_over_postgresql() -> None:
    with postgres.running() as url:
        assert_a_killed_trial_comes_back(url)


def test_a_fresh_sign_of_life_keeps_a_trial(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"

    def meanwhile(places: Mapping[str, float], tell: object) -> float:
        with study._using(url) as storage:
            joined = optuna.load_study(study_name="mine", storage=storage)
            heartbeat.requeue_stale(joined)
            assert [each.number for each in joined.get_trials(states=(TrialState.RUNNING,))]
        return quick(places, tell)

    assert len(study.search(shared(url), meanwhile, ENDS).trials) == 3
    assert {each.state for each in trials(url)} == {TrialState.COMPLETE}


def test_a_process_that_wakes_too_late_drops_its_result(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    slept: list[bool] = []

    def sleep(_places: Mapping[str, float], _tell: object) -> float:
        if not slept:
            slept.append(True)
            age(url)
            study.search(shared(url), quick, ENDS)  # another process ends the whole study
        return -1.0

    found = study.search(shared(url), sleep, ENDS)
    assert all(each.score is not None and each.score >= 0 for each in found.trials)
    assert [each.state for each in trials(url)].count(TrialState.FAIL) == 1
    assert len(found.trials) == 3
