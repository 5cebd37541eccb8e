"""An instance of ours in a slot that may be filled or not: counted at once, and adopted or held when that is known."""

from typing import Any

import msgspec
import pytest

from agent.decide import slot_releases, slots
from agent.decide.facts import Fact, LeaseChanged, Marked
from agent.decide.pricing import cooldowns
from agent.decide.reconcile import orphans, outcomes, reconcile, waiting_verdict
from agent.decide.reconcile.ownership import Ownership
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.strategy import Proposal, SlotView
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
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
    held = builders.lease(7, is_held=True, end_reason=waiting_verdict.MARK)
    release = Release(held, Reason("ordered", "all spending is stopped"))
    assert outcomes.written(release, builders.NOW, Checkpoint()).lease.end_reason == "ordered"


def seen_after(lease: Lease, *orders: Intent, rows: tuple[Instance, ...] = (test_orphans.ROW,)) -> Fleet:
    """Return the fleet of a slot whose lease is gone, with an orphan that waits and orders in doubt."""
    waits = builders.lease(7, is_held=True, end_reason=waiting_verdict.MARK)
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
    waits = builders.lease(7, is_held=True, end_reason=waiting_verdict.MARK)
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
    assert (waits.has_failed, waiting_verdict.is_due(waits)) == (True, True)
    (change,) = decided(seen((lost, waits), absent_ids=frozenset({"1"})))
    assert isinstance(change, LeaseChanged)
    why = "mismatch: it is on host h7 instead of h8"
    assert (change.after.is_held, change.after.end_reason) == (False, why)
    (release,) = slot_releases.releases(builders.fleet(leases=(change.after,), markets={"vast": look}))
    assert release.reason.code == "mismatch"
    ended = outcomes.written(Release(waits, Reason("ordered", "by hand")), builders.NOW, Checkpoint()).lease
    assert ended.end_reason == why


@pytest.mark.parametrize("state", [IntentState.SENT, IntentState.IN_DOUBT])
@pytest.mark.parametrize("verdict", ["adopt", "hold"])
def test_an_orphan_beside_a_rent_in_doubt_waits_until_the_doubt_is_settled(verdict: str, state: IntentState) -> None:
    """It was held for good, although the rent proved void and its slot was rented again beside it."""
    rent = builders.intent(2, state=state)
    look = builders.view(instances=(test_orphans.ROW,), labels=test_orphans.LABELS, looks=test_orphans.LABELS)
    waits = test_orphans.found(builders.fleet(intents=(rent,), markets={"vast": look}))
    assert (waits.verdict, waits.lease is not None) == ("wait", True)
    assert waits.lease is not None
    assert decided(builders.fleet(leases=(waits.lease,), intents=(rent,), markets={"vast": look})) == ()
    # A void rent leaves the slot empty; a listing that shows its instance fills the slot.
    row = builders.instance(2, host_id="h2")
    leases = (waits.lease,) if verdict == "adopt" else (waits.lease, builders.lease(2))
    rows = (test_orphans.ROW,) if verdict == "adopt" else (test_orphans.ROW, row)
    settled = builders.fleet(leases=leases, markets={"vast": msgspec.structs.replace(look, instances=rows)})
    (fact,) = decided(settled)
    assert isinstance(fact, LeaseChanged)
    assert fact.evidence is not None
    assert (fact.evidence.rule, fact.after.is_held) == (verdict, verdict == "hold")


TROUBLE = {
    "failed": {"state": InstanceState.FAILED},
    "image refused": {"state": InstanceState.FAILED, "is_image_refused": True},
    "on another host": {"host_id": "h9"},
    "stopped": {"state": InstanceState.PAUSED},
}


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE)
def test_what_befalls_an_orphan_that_waits_takes_its_verdict_from_it(trouble: dict[str, Any]) -> None:
    """The reason of a failed start replaced the mark, so that it was held for good."""
    waits = builders.lease(
        7, state=LeaseState.STARTING, is_held=True, end_reason=waiting_verdict.MARK, bills=Bills.GPU_AND_DISK
    )
    lost = builders.lease(1, market="runpod")
    row = builders.instance(7, **trouble)

    def seen(leases: tuple[Lease, ...], **changes: Any) -> Fleet:
        view = builders.view(instances=(row,), labels=test_orphans.LABELS)
        return builders.fleet(
            leases=leases, markets={"vast": view, "runpod": builders.view(market="runpod", **changes)}
        )

    first = reconcile.reconcile(seen((waits, lost)), Memory())
    found = reconcile.reconcile(seen((waits, lost)), first.memory)
    (change,) = (fact for fact in found.facts if isinstance(fact, LeaseChanged) and fact.before.lease_id == "vast-7")
    assert change.before == waits
    assert waiting_verdict.is_due(change.after)
    counted = {
        fact.record.counted for fact in found.facts if isinstance(fact, Marked) and isinstance(fact.record, Tally)
    }
    counted &= {Counted.FAILED_START, Counted.FAST_EXIT}
    failed = {Counted.FAILED_START} if change.after.has_failed else set()
    assert counted == (failed | {Counted.FAST_EXIT} if row.is_image_refused else failed)
    (verdict,) = decided(seen((change.after, lost), absent_ids=frozenset({"1"})))
    assert isinstance(verdict, LeaseChanged)
    assert not verdict.after.is_held
    assert verdict.after.end_reason == waiting_verdict.own_reason(change.after)
    assert verdict.after.has_failed == (verdict.after.end_reason != "")
