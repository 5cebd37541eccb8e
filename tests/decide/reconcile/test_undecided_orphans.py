"""An instance of ours in a slot that may be filled or not: counted at once, and adopted or held when that is known."""

from typing import Any

import msgspec
import pytest

from agent.decide import slots
from agent.decide.facts import Fact, LeaseChanged
from agent.decide.pricing import cooldowns
from agent.decide.reconcile import orphans, outcomes
from agent.decide.reconcile.ownership import Ownership
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.strategy import Proposal, SlotView
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
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


def seen_after(lease: Lease, *orders: Intent, rows: tuple[Instance, ...] = (test_orphans.ROW,)) -> Fleet:
    """Return the fleet of a slot whose lease is gone, with an orphan that waits and orders in doubt."""
    waits = builders.lease(7, is_held=True, end_reason=orphans.UNDECIDED)
    view = builders.view(instances=rows, labels=test_orphans.LABELS, absent_ids=frozenset({"1"}))
    return builders.fleet(leases=(lease, waits), intents=orders, markets={"vast": view})


@pytest.mark.parametrize("kind", [IntentKind.RESUME, IntentKind.REBID, IntentKind.RENT])
@pytest.mark.parametrize("state", [LeaseState.MISSING, LeaseState.ENDED])
def test_an_orphan_waits_while_an_order_on_the_lease_that_is_gone_is_in_doubt(
    state: LeaseState, kind: IntentKind
) -> None:
    """It was held for good, the doubt proved void in the same pass, and the slot was rented again beside it."""
    gone = builders.lease(1, state=state, bills=Bills.NOTHING)
    doubted = seen_after(gone, builders.intent(kind=kind, lease_id="vast-1"))
    assert decided(doubted) == ()
    (verdict,) = decided(seen_after(gone))
    assert isinstance(verdict, LeaseChanged)
    assert verdict.evidence is not None
    assert verdict.evidence.rule == "adopt"


@pytest.mark.parametrize("state", [LeaseState.MISSING, LeaseState.ENDED])
def test_an_orphan_that_is_found_while_such_an_order_is_in_doubt_waits_too(state: LeaseState) -> None:
    gone = builders.lease(1, state=state, bills=Bills.NOTHING)
    order = builders.intent(kind=IntentKind.RESUME, lease_id="vast-1")
    look = builders.view(
        instances=(test_orphans.ROW,),
        labels=test_orphans.LABELS,
        looks=test_orphans.LABELS,
        absent_ids=frozenset({"1"}),
    )
    found = test_orphans.found(builders.fleet(leases=(gone,), intents=(order,), markets={"vast": look}))
    assert found.verdict == "wait"
    shown = msgspec.structs.replace(look, instances=(test_orphans.ROW, builders.instance(1)), absent_ids=frozenset())
    filled = builders.fleet(leases=(builders.lease(1),), intents=(order,), markets={"vast": shown})
    assert test_orphans.found(filled).verdict == "hold", "the lease is there, so its slot is filled"


@pytest.mark.parametrize("place", [builders.slot(), builders.slot("train", 1)])
def test_a_slot_waits_for_its_orphan_after_a_restart_in_a_dark_market(place: Slot) -> None:
    """The labels are known from the first listing on; the ledger has the orphan before (rule 19)."""
    waits = builders.lease(7, is_held=True, end_reason=orphans.UNDECIDED)
    view = MarketView("vast", no_spend_because="")
    fleet = builders.fleet(leases=(waits,), markets={"vast": view})
    assert orphans.claimant(fleet, place) == ("7" if place == waits.slot else "")
    answer = slots.view_or_proposal(fleet, place, cooldowns.in_force(fleet))
    assert isinstance(answer, Proposal if place == waits.slot else SlotView)


def test_an_orphan_that_differs_from_its_order_keeps_the_difference_while_it_waits() -> None:
    """After its adoption its host was charged with a failed start instead of an instance that is not as ordered."""
    lost = builders.lease(1, market="runpod")
    asked = builders.intent(7, state=IntentState.CONFIRMED, host_id="h8")
    look = builders.view(
        instances=(test_orphans.ROW,),
        labels=test_orphans.LABELS,
        looks=test_orphans.LABELS,
        looked_rows={"7": test_orphans.ROW},
    )

    def seen(leases: tuple[Lease, ...], **changes: Any) -> Fleet:
        markets = {"vast": look, "runpod": builders.view(market="runpod", **changes)}
        return builders.fleet(leases=leases, markets=markets, past_intents={asked.intent_id: asked})

    waits = test_orphans.found(seen((lost,))).lease
    assert waits is not None
    assert (waits.has_failed, orphans.is_undecided(waits)) == (True, True)
    (change,) = decided(seen((lost, waits), absent_ids=frozenset({"1"})))
    assert isinstance(change, LeaseChanged)
    why = "mismatch: it is on host h7 instead of h8"
    assert (change.after.is_held, change.after.end_reason) == (False, why)
    (release,) = slots.releases(builders.fleet(leases=(change.after,), markets={"vast": look}))
    assert release.reason.code == "mismatch"
    ended = outcomes.written(Release(waits, Reason("ordered", "by hand")), builders.NOW, Checkpoint()).lease
    assert ended.end_reason == why
