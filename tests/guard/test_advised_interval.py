"""The daemon's advice to a running guard: it counts within bounds, and nothing that is no advice changes anything."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.guard import guard_settings
from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints.advised_interval import AdvisedInterval
from agent.guard.guard_beat import GuardBeat
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import GuardSettings
from agent.guard.guard_status import GuardStatus
from tests.support.memory_store import MemoryStore

HOUR = 3600.0


def settings() -> GuardSettings:
    told = {"version": 1, "paths": ["/w"], "lease": "L1", "interval_seconds": 900}
    return guard_settings.read({"GPUBID_GUARD": json.dumps(told), "GPUBID_CHECKPOINT_BY_AGE": "0:400 3600:800"})


def advised(by_age: object, lease: str = "L1") -> AdvisedInterval:
    made = AdvisedInterval(settings())
    made.take({"version": 1, "lease": lease, "by_age": by_age})
    return made


def test_without_an_advice_the_intervals_of_the_rent_count() -> None:
    made = AdvisedInterval(settings())
    assert (made.at(0.0), made.at(2 * HOUR)) == (400.0, 800.0)


def test_an_advice_counts_by_age_and_at_most_four_times_off_the_rent() -> None:
    made = advised([[0, 300], [3600, 1000]])
    assert (made.at(0.0), made.at(2 * HOUR)) == (300.0, 1000.0)
    assert (advised([[0, 1]]).at(0.0), advised([[0, 10**9]]).at(0.0)) == (100.0, 1600.0)
    assert advised([[3600, 700]]).at(0.0) == 400.0


@pytest.mark.parametrize(
    "by_age",
    [
        None,
        "0:300",
        [],
        [[0]],
        [[0, "300"]],
        [[0, True]],
        [[0, -5]],
        [[0, 10**400]],
        [[-1, 300]],
        [[0, 300]] * 65,
        {"0": 300},
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_advice_changes_nothing(by_age: Any) -> None:
    assert advised(by_age).at(0.0) == 400.0
    good = advised([[0, 300]])
    good.take({"version": 1, "lease": "L1", "by_age": by_age})
    assert good.at(0.0) == 300.0


def test_an_advice_for_another_lease_is_not_ours() -> None:
    assert advised([[0, 300]], "L2").at(0.0) == 400.0


def test_the_beat_reads_it_once_each_time(tmp_path: Path) -> None:
    notes, made = BucketNotes(MemoryStore(), "root"), AdvisedInterval(settings())
    beat = GuardBeat(GuardClock(), GuardOutput(), GuardStatus("L1", None, tmp_path), notes, lambda _: None, made.take)
    beat.beat()
    assert made.at(0.0) == 400.0
    notes.write("advice-L1.json", {"version": 1, "lease": "L1", "by_age": [[0, 300]]})
    beat.beat()
    assert made.at(0.0) == 300.0
