"""Which releases may give the work its signal to stop: not those of a kill or a hard cap, and not for long."""

from datetime import timedelta

import pytest

from agent.decide import slot_releases
from agent.decide.moves import due_endings
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import GONE, Reason, Release
from tests.support import builders

HARD = ("killed", "over_budget", "over_rate")


@pytest.mark.parametrize("code", ["ordered", "done", "paused", "better_offer", "not_needed", GONE, *HARD])
def test_only_kill_and_hard_caps_do_not_wait_for_the_work(code: str) -> None:
    order = Release(builders.lease(1), Reason(code, "why"))
    assert due_endings.is_gentle(order, builders.NOW) is (code not in HARD)


@pytest.mark.parametrize(
    ("seconds", "first", "is_gentle"),
    [
        (15, "ordered", True),
        (119, "ordered", True),
        (120, "ordered", False),
        (15, "killed", False),
        (-9, "done", False),
    ],
)
def test_a_repeated_release_is_as_the_first_until_it_has_taken_too_long(
    seconds: float, first: str, is_gentle: bool
) -> None:
    lease = builders.lease(
        1, state=LeaseState.RELEASING, end_reason=first, state_since=builders.NOW - timedelta(seconds=seconds)
    )
    order = Release(lease, Reason(slot_releases.RELEASE_AGAIN, "again"))
    assert due_endings.is_gentle(order, builders.NOW) is is_gentle
