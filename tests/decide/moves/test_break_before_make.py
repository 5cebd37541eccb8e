"""A release makes room for a rent only if its slot has no other lease: that of a finished move does not wait."""

import msgspec

from agent.decide.moves import break_before_make
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Pause, Reason, Release
from tests.support import builders

OLD = builders.lease()
MOVED = Release(OLD, Reason(break_before_make.MOVED, "no room for two at once"))
NEW = msgspec.structs.replace(OLD, lease_id="vast-2", instance_id="2")


def test_only_the_last_lease_of_a_slot_makes_room() -> None:
    elsewhere = msgspec.structs.replace(NEW, slot=Slot(OLD.slot.workload, OLD.slot.index + 1))
    over = msgspec.structs.replace(NEW, state=LeaseState.ENDED)
    assert break_before_make.makes_room(MOVED, (OLD, elsewhere, over))
    assert not break_before_make.makes_room(MOVED, (OLD, NEW))


def test_what_ends_for_another_reason_makes_no_room() -> None:
    assert not break_before_make.makes_room(Release(OLD, Reason("ordered", "a person")), (OLD,))
    assert not break_before_make.makes_room(Pause(OLD, MOVED.reason), (OLD,))
