"""Point 3: the new lease of a move is given up for being lost only where it did not run when its release was sent."""

import dataclasses
import math
from collections.abc import Iterator
from datetime import timedelta
from unittest import mock

import pytest
import structlog

from agent.decide import slot_releases
from agent.decide.reconcile import groundless_releases
from agent.decide.reconcile.probes import lost_move
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Reason
from agent.domain.work.workload import Workload
from tests.disasters import draw, play, seed_runs
from tests.disasters.points import releases
from tests.disasters.story import Deed, Guarded, Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    seed_runs.quietly()
    yield
    # A process that logs nothing would fail the next test that reads what is logged.
    structlog.reset_defaults()


MOVES = Story(90509, ("vast",), (Work("w0", "batch", "deadline", 1),), 31.0, 1.0, 3)
"""Its first lease is outbid, the second loses its GPU while it loads, and gets it back five minutes later."""
DIES = (Strike("vast", "account", 8, "death_before"), Strike("vast", "release", 1, "death_before"))


def test_a_release_that_was_sent_before_its_lease_came_back_is_sent_until_it_is_done() -> None:
    assert play.play(dataclasses.replace(MOVES, strikes=DIES)).broken is None


RECORDED = Strike("ledger", "commit", 43, "death_after")
"""The program dies once it has recorded that the new lease of the move is to be released, and before any order left."""
DOWN = Deed(30, "restart", amount=0.85)
"""It starts again after that lease came back."""


def test_a_release_that_never_left_is_called_off_where_its_lease_came_back() -> None:
    story = dataclasses.replace(MOVES, strikes=(RECORDED,), deeds=(DOWN,))
    assert play.play(story).broken is None
    with mock.patch.object(groundless_releases, "is_called_off", return_value=False):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "recorded is 'move_lost'" in broken.sentence) == (3, True)


@pytest.mark.nightly
def test_the_release_of_an_old_lease_is_sent_although_its_host_came_back_before_a_new_process() -> None:
    """It was decided while its host was silent and the new lease ran, and the program died before it was sent."""
    story = draw.story(2925)
    assert play.play(story).broken is None
    with mock.patch.object(releases, "SEEN_SECONDS", -math.inf):
        broken = play.play(story).broken
    assert broken is not None
    assert (broken.point, "recorded is 'moved'" in broken.sentence) == (3, True)


def test_a_new_lease_that_runs_is_not_lost() -> None:
    lost = lost_move.is_lost

    def hasty(fleet: Fleet, lease: Lease, work: Workload) -> bool:
        return lease.state is LeaseState.RUNNING or lost(fleet, lease, work)

    with mock.patch.object(lost_move, "is_lost", hasty):
        broken = play.play(MOVES).broken
    assert broken is not None
    assert (broken.point, "recorded is 'move_lost'" in broken.sentence) == (3, True)


GUARD = Guarded(False, 0.0, 1, 900.0, 1.0, 90.0, 60.0, 0.0, "reject", 6.0, 30.0, is_warned=True)
BATCH = Guarded(False, 7200.0, 0, 600.0, 30.0, 10.0, 20.0, 0.0, "reject", 3.0, 4.5)
ENDS = Story(
    101894,
    ("vast",),
    (Work("w1", "batch", "hedged", 1, guard=BATCH), Work("w2", "service", "hedged", 2, ("vast",), guard=GUARD)),
    37.0,
    4.0,
    3,
    (
        *(Strike("ledger", "commit", number, "death_after") for number in (39, 66, 76, 194, 203)),
        Strike("vast", "look", 4, "label", 1, 3.0),
        Strike("vast", "look", 7, "host", 1, 7.0),
    ),
    (
        Deed(48, "host_gone", 1, 0.12038558679659306),
        Deed(49, "relabel", 26, 0.14486754248814748),
        Deed(77, "near_end", 37, 0.07559242621212715),
        Deed(90, "near_end", 34, 0.24460253921582165),
    ),
)
"""The program dies once it has recorded the release of a lease whose host ends in minutes. The host puts that off."""


@pytest.mark.nightly
def test_a_release_before_a_near_end_is_sent_although_the_host_puts_the_end_off() -> None:
    assert play.play(ENDS).broken is None


def test_a_release_to_move_without_another_lease_is_found() -> None:
    def early(_: Fleet, lease: Lease, __: Workload | None) -> Reason | None:
        is_old = lease.run_since is not None and lease.accrued_until - lease.run_since > timedelta(minutes=2)
        return Reason("moved", "on the way") if is_old else None

    with mock.patch.object(slot_releases, "_moved_away", early):
        broken = play.play(MOVES).broken
    assert broken is not None
    assert (broken.point, "recorded is 'moved'" in broken.sentence) == (3, True)
