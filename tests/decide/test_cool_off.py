"""A slot in its cool-off is not moved again, also while its old lease runs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.decide.strategy import Params, Proposal, View
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.intent import IntentKind
from agent.domain.work.decision import Decision, Hold, Reason, Rent
from tests.support import builders

MOVE = Proposal(builders.slot(), IntentKind.RENT, Reason("because", "because"), candidate=builders.candidate())


class Numbers(Params):
    """No numbers."""


class Moves:
    """Proposes to rent a second lease, whatever the slot has."""

    params: ClassVar[type[Params]] = Numbers

    def propose(self, view: View, params: Params, /) -> Sequence[Proposal]:
        del view, params
        return (MOVE,)


def decided(slot: str, **changes: Any) -> Decision:
    """Return the decision of a cycle in which the slot of that name cools off."""
    resting = Cooldown(CooldownKind.COOL_OFF, slot, builders.NOW + timedelta(minutes=5), "external_stop")
    fleet = builders.fleet(markets={"vast": builders.view(offers=(builders.offer(),))}, cooldowns=(resting,), **changes)
    (decision,) = plan.plan(fleet, {"patient": builders.tuned(Moves(), Numbers())}, Limits()).decisions
    return decision


@pytest.mark.parametrize("tenure", [Tenure.ON_DEMAND, Tenure.INTERRUPTIBLE])
def test_a_slot_is_not_moved_again_within_a_cool_off_while_its_old_lease_runs(tenure: Tenure) -> None:
    """Somebody stops each new lease while it loads: every further one would load the image again."""
    runs = (builders.lease(2, tenure=tenure),)
    made = decided("train/0", leases=runs)
    assert (type(made), made.reason.code) == (Hold, "cool_off")
    assert made.reason.sentence.startswith("one move in 10 min: external_stop")
    assert isinstance(decided("train/1", leases=runs), Rent)
