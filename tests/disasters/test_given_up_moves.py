"""Point 3: the new lease of a move is given up for being lost only where it did not run when its release was sent."""

import dataclasses
from collections.abc import Iterator
from unittest import mock

import pytest
import structlog

from agent.decide import slots
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload
from tests.disasters import __main__ as disasters
from tests.disasters import play
from tests.disasters.story import Story, Strike, Work


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    disasters.quietly()
    yield
    # A process that logs nothing would fail the next test that reads what is logged.
    structlog.reset_defaults()


MOVES = Story(90509, ("vast",), (Work("w0", "batch", "deadline", 1),), 31.0, 1.0, 3)
"""Its first lease is outbid, the second loses its GPU while it loads, and gets it back five minutes later."""
DIES = (Strike("vast", "account", 8, "death_before"), Strike("vast", "release", 1, "death_before"))


def test_a_release_that_was_sent_before_its_lease_came_back_is_sent_until_it_is_done() -> None:
    assert play.play(dataclasses.replace(MOVES, strikes=DIES)).broken is None


def test_a_new_lease_that_runs_is_not_lost() -> None:
    lost = slots._is_lost_move

    def hasty(fleet: Fleet, lease: Lease, work: Workload) -> bool:
        return lease.state is LeaseState.RUNNING or lost(fleet, lease, work)

    with mock.patch.object(slots, "_is_lost_move", hasty):
        broken = play.play(MOVES).broken
    assert broken is not None
    assert (broken.point, "recorded is 'move_lost'" in broken.sentence) == (3, True)
