"""An instance of ours in a slot that may be filled or not: counted at once, and adopted or held when that is known."""

from typing import Any

import pytest

from agent.decide.facts import Fact, LeaseChanged
from agent.decide.reconcile import orphans, outcomes
from agent.decide.reconcile.ownership import Ownership
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Reason, Release
from agent.domain.work.workload import Checkpoint
from tests.decide.reconcile import test_orphans
from tests.support import builders


@pytest.mark.parametrize("state", [LeaseState.RUNNING, LeaseState.MISSING])
@pytest.mark.parametrize(
    "seen",
    [
        {"is_key_proven": True},
        {"is_key_proven": False, "absent_ids": frozenset({"1"})},
        {"is_fresh": False, "instances": (builders.instance(1, market="runpod"),)},
    ],
    ids=["not denied", "no proof of the key", "dark"],
)
def test_an_orphan_waits_while_the_lease_of_its_slot_is_neither_shown_nor_denied(
    seen: dict[str, Any], state: LeaseState
) -> None:
    """A hold is final: minutes later the lease was gone, and its slot rented again beside the held instance."""
    lease = builders.lease(1, market="runpod", state=state)
    look = builders.view(instances=(test_orphans.ROW,), labels=test_orphans.LABELS, looks=test_orphans.LABELS)

    def seen_as(leases: tuple[Lease, ...] = (lease,), **changes: Any) -> Fleet:
        return builders.fleet(
            leases=leases, markets={"vast": look, "runpod": builders.view(market="runpod", **changes)}
        )

    waiting = test_orphans.found(seen_as(**seen))
    assert (waiting.verdict, waiting.lease and waiting.lease.is_held) == ("wait", True)
    assert waiting.lease is not None
    assert waiting.lease.accrued_until == test_orphans.ROW.created_at, "it is counted from its creation on"
    leases = (lease, waiting.lease)
    for _ in range(5):
        facts, _ = test_orphans.looked(seen_as(leases=leases, **seen), Memory())
        assert (facts, decided(seen_as(leases=leases, **seen))) == ((), ())
    assert not orphans.claimant(builders.fleet(), lease.slot)
    assert orphans.claimant(seen_as(**seen), lease.slot) == "7"
    assert orphans.claimant(seen_as(leases=leases, **seen), lease.slot) == "7", "its slot rents nothing beside it"
    (gone,) = decided(seen_as(leases=leases, is_key_proven=True, absent_ids=frozenset({"1"})))
    (shown,) = decided(seen_as(leases=leases, instances=(builders.instance(1, market="runpod"),)))
    assert isinstance(gone, LeaseChanged)
    assert isinstance(shown, LeaseChanged)
    assert gone.evidence is not None
    assert shown.evidence is not None
    assert (gone.evidence.rule, shown.evidence.rule) == ("adopt", "hold")
    assert [(fact.after.is_held, fact.after.end_reason) for fact in (gone, shown)] == [(False, ""), (True, "")]


def decided(fleet: Fleet) -> tuple[Fact, ...]:
    """Return the verdicts on leases that waited for one."""
    return orphans.decided(fleet, Ownership(fleet.leases, (), {}, frozenset(), frozenset())).facts


def test_what_waited_for_a_verdict_is_ended_by_the_order() -> None:
    """A repeated release has the reason of the first: a kill goes on beside a second daemon, a verdict does not."""
    held = builders.lease(7, is_held=True, end_reason=orphans.UNDECIDED)
    release = Release(held, Reason("ordered", "all spending is stopped"))
    assert outcomes.written(release, builders.NOW, Checkpoint()).lease.end_reason == "ordered"
