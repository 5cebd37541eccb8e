"""A loss and a wrong rent are suspected at the first look, found at the second, and found again until recorded."""

import msgspec
import pytest

from agent.decide.reconcile import reconcile
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.lease import Lease, LeaseState
from tests.support import builders
from tests.support.listings import NOW, POLL, changed, kinds, seen

LOST_OR_MISMATCHED = pytest.mark.parametrize(
    ("held", "row", "kind"),
    [
        (builders.lease(), builders.instance(state=InstanceState.PAUSED), "lease.interrupted"),
        (
            builders.lease(state=LeaseState.STARTING, has_run=False),
            builders.instance(state=InstanceState.LOADING, gpu_rate=builders.per_hour("9")),
            "lease.mismatched",
        ),
    ],
    ids=["lost", "mismatched"],
)


@LOST_OR_MISMATCHED
def test_what_two_looks_have_shown_is_found_again_until_it_is_recorded(held: Lease, row: Instance, kind: str) -> None:
    """The pass that found it may not be the one that is recorded: its cycle looked twice, or its write failed."""
    memory = seen(held, row, at=1).memory
    for at in (2, 3, 4):
        result = seen(held, row, at=at, memory=memory)
        assert changed(result).kind == kind
        memory = result.memory
    after = changed(result).after
    assert seen(after, row, at=5, memory=memory).memory.suspicions == {}, "the ledger has it"


def test_a_recorded_loss_is_no_suspicion_of_what_was_resumed_since() -> None:
    """The market still shows the stop for a moment; one look at it proves no second loss."""
    row, memory = builders.instance(state=InstanceState.PAUSED), seen(builders.lease(), at=0).memory
    for at in (1, 2):
        result = seen(builders.lease(), row, at=at, memory=memory)
        memory = result.memory
    resumed = msgspec.structs.replace(
        changed(result).after, state=LeaseState.STARTING, state_since=NOW + 2.5 * POLL, interrupted_by=None
    )
    after = seen(resumed, row, at=3, memory=memory)
    assert after.facts == ()
    assert after.memory.suspicions[resumed.lease_id].seen_at == NOW + 3 * POLL


@LOST_OR_MISMATCHED
def test_what_no_look_by_id_has_answered_is_asked_for_again(held: Lease, row: Instance, kind: str) -> None:
    """Two listings may tell the same lie. The look by id of the first pass got no answer, and so does the next."""
    memory = seen(held, row, at=1).memory
    for at in (2, 3):
        memory = seen(held, at=at, memory=memory, is_fresh=False).memory
        again = seen(held, row, at=at, memory=memory)
        assert kinds([again]) == []
        assert again.suspects == {held.lease_id}
        assert again.to_probe == {held.instance_id}
        memory = again.memory
    found = seen(held, row, at=4, memory=memory, looked_up=frozenset({held.instance_id}))
    assert changed(found).kind == kind
    assert changed(seen(held, row, at=5, memory=found.memory)).kind == kind, "it is not recorded yet"


@LOST_OR_MISMATCHED
def test_listings_alone_are_believed_while_looks_by_id_stay_unanswered(held: Lease, row: Instance, kind: str) -> None:
    memory = seen(held, row, at=1).memory
    memory = seen(held, at=1, memory=memory, is_fresh=False).memory
    late = 1 + int(reconcile.ANSWER_WITHIN / POLL)
    assert kinds([seen(held, row, at=late - 1, memory=memory)]) == []
    assert changed(seen(held, row, at=late, memory=memory)).kind == kind
