"""A decision: whose slot it is about, and whether it may raise what we pay."""

import pytest

from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.work import decision
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Rebid, Release, Rent, Resume
from tests.support import builders

WHY = Reason("code", "sentence")
HELD = builders.lease(slot=builders.slot("train", 3))
RENT = Rent(
    builders.slot("train", 3),
    builders.offer(),
    Tenure.INTERRUPTIBLE,
    builders.per_hour("0.22"),
    builders.per_hour("0.224"),
    WHY,
)
RAISE = Rebid(HELD, builders.per_hour("0.2201"), WHY)
LOWER = Rebid(HELD, builders.per_hour("0.22"), WHY)
HOLD = Hold(builders.slot("train", 3), WHY)


@pytest.mark.parametrize("made", [RENT, RAISE, LOWER, Resume(HELD, WHY), Pause(HELD, WHY), Release(HELD, WHY), HOLD])
def test_every_decision_is_about_one_slot(made: Decision) -> None:
    assert decision.slot_of(made) == builders.slot("train", 3)


@pytest.mark.parametrize(
    ("made", "raises"),
    [
        (RENT, True),
        (RAISE, True),
        (LOWER, False),
        (Resume(HELD, WHY), True),
        (Pause(HELD, WHY), False),
        (Release(HELD, WHY), False),
        (HOLD, False),
    ],
)
def test_only_what_may_cost_more_raises_spend(made: Decision, raises: bool) -> None:
    assert decision.raises_spend(made) is raises


def test_every_decision_but_hold_is_one_kind_of_intent() -> None:
    # No plan decides on the keys of a shell: they are kept beside it. A rent that keeps a host is of a kind of its own.
    assert set(decision.KIND.values()) == set(IntentKind) - {IntentKind.REGISTER_KEY, IntentKind.REASSIGN}
    assert Hold not in decision.KIND
