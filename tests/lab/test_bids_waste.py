"""The parts of a bill, computed by hand."""

from datetime import timedelta

import pytest

from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.lab.bids import waste
from agent.simulator.instances.billing import Rates, Turn

PROMISE = Checkpoint(timedelta(minutes=15), timedelta(minutes=1), 2.0, CheckpointPlace.REMOTE)
MINUTE, HOUR = 60.0, 3600.0
PULLING = Rates(0.0, 0.06, 60.0, 0.01)
"""$0.06 an hour for the disk, a gigabyte a minute at a cent."""
PAUSED = Rates(0.0, 0.06)
PAID = Rates(0.6, 0.06)
"""1.1 cents a minute, disk included."""


def turn(
    at: float, rates: Rates, *, runs: bool = False, holds: bool = False, contract: int = 1, ends: bool = False
) -> Turn:
    return Turn(at, contract, rates, is_running=runs, holds_gpu=holds, is_end=ends)


LOST = (
    turn(0.0, PULLING, holds=True),
    turn(5 * MINUTE, PAID, runs=True, holds=True),
    turn(46 * MINUTE, PAUSED),
    turn(60 * MINUTE, Rates(), ends=True),
)


def test_a_lost_run_is_useful_to_its_last_checkpoint_and_every_cent_has_a_kind() -> None:
    found = waste.split(waste.parts(LOST, {1: 100.0}, {(1, 60 * MINUTE)}, PROMISE, 2 * HOUR))
    # 41 minutes of running: 1 restores, 30 reach a checkpoint, 10 are lost.
    assert found.useful_hours == pytest.approx(0.5)
    assert found.useful_dlperf_hours == pytest.approx(50.0)
    assert found.dollars == pytest.approx(
        {
            "useful": 30 * 0.011,
            "lost": 10 * 0.011,
            "loading": 5 * 0.001 + 1 * 0.011,
            "paused": 14 * 0.001,
            "traffic": 5 * 0.01,
            "idle": 0.0,
        }
    )
    assert found.bill == pytest.approx(5 * 0.011 + 41 * 0.011 + 14 * 0.001)


def test_a_lost_run_without_checkpoints_was_of_no_use() -> None:
    none = Checkpoint(timedelta(minutes=15), timedelta(minutes=1), 2.0, CheckpointPlace.NONE)
    found = waste.split(waste.parts(LOST, {1: 100.0}, {(1, 60 * MINUTE)}, none, 2 * HOUR))
    assert found.useful_hours == 0.0
    assert found.dollars["lost"] == pytest.approx(40 * 0.011)


def test_what_we_stop_ourselves_is_useful_to_its_end() -> None:
    found = waste.split(waste.parts(LOST, {1: 100.0}, {(1, 46 * MINUTE), (1, 60 * MINUTE)}, PROMISE, 2 * HOUR))
    assert found.useful_hours == pytest.approx(40 / 60)
    assert found.dollars["lost"] == 0.0


def test_what_runs_beside_the_old_lease_idles_and_what_goes_on_is_not_lost() -> None:
    turns = (
        turn(0.0, PAID, runs=True, holds=True),
        turn(10 * MINUTE, PAID, runs=True, holds=True, contract=2),
        turn(14 * MINUTE, Rates(), ends=True),
    )
    found = waste.split(waste.parts(turns, {1: 50.0, 2: 100.0}, {(1, 14 * MINUTE)}, PROMISE, 20 * MINUTE))
    assert found.dollars["idle"] == pytest.approx(3 * 0.011)
    assert found.dollars["loading"] == pytest.approx(2 * 0.011)
    assert found.useful_dlperf_hours == pytest.approx(13 / 60 * 50 + 6 / 60 * 100)
    assert found.dollars["lost"] == 0.0
