"""The notice of a market that ends a lease: a checkpoint, a replacement where it pays, and the loss with its notice."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import needs, plan
from agent.decide.facts import LeaseChanged
from agent.decide.moves import last_checkpoint, maintenance_checkpoint
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.domain.work.deadline import Deadline
from agent.domain.work.decision import Decision, Hold, Rent
from agent.domain.work.guard_report import GuardBeat, GuardReport
from agent.domain.work.workload import Workload, WorkloadKind
from strategies.deadline import Deadline as DeadlineStrategy
from strategies.deadline import DeadlineParams
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from strategies.patient import Patient, PatientParams
from tests.support import builders, second_price

LIMIT = builders.per_hour("0.79")
TUNED = {
    "patient": builders.tuned(Patient(), PatientParams()),
    "hedged": builders.tuned(Hedged(), HedgedParams(), "hedged"),
    "deadline": builders.tuned(DeadlineStrategy(), DeadlineParams(), "deadline"),
}
DUE = Deadline(4.0, builders.NOW + timedelta(hours=20))
ENDS = builders.NOW + timedelta(minutes=4)


def work(**changes: Any) -> Workload:
    return builders.workload(**{"value_per_hour": builders.per_hour("0.80"), **changes})


def decided(fleet: Fleet) -> tuple[Decision, ...]:
    return plan.plan(fleet, TUNED, builders.NO_LIMITS).decisions


def looked(lease: Lease, row: Instance, *, at: int = 1, memory: Memory | None = None) -> reconcile.Reconciliation:
    """Reconcile a listing that was read `at` polls of 15 s after the last metering."""
    now = builders.NOW + timedelta(seconds=15 * at)
    view = second_price.view(instances=(row,), listed_at=now, listed_monotonic=1000.0 + 15 * at, listings=10 + at)
    fleet = builders.fleet(leases=(lease,), now=now, workloads=(work(),), markets={second_price.NAME: view})
    return reconcile.reconcile(fleet, memory or Memory())


def changed(result: reconcile.Reconciliation) -> LeaseChanged:
    (fact,) = [fact for fact in result.facts if isinstance(fact, LeaseChanged)]
    return fact


def shown(**changes: Any) -> Instance:
    return second_price.row(limit=LIMIT, **changes)


def under_notice(**changes: Any) -> Lease:
    return second_price.lease(notice_at=ENDS, bid_limit=LIMIT, **changes)


@pytest.mark.parametrize("strategy", ["patient", "hedged", "deadline"])
def test_a_replacement_is_rented_before_the_end_where_that_pays_more_than_to_wait(strategy: str) -> None:
    changes: dict[str, Any] = {"deadline": DUE, "kind": WorkloadKind.BATCH} if strategy == "deadline" else {}
    wants, lease, row = (
        work(strategy=strategy, **changes),
        under_notice(),
        shown(notice_at=ENDS),
    )
    offers = [second_price.pool(1, floor=builders.per_hour("0.05")), second_price.pool(2)]
    (rent,) = decided(second_price.fleet(leases=(lease,), rows=[row], offers=offers, workloads=(wants,)))
    assert isinstance(rent, Rent)
    assert (rent.offer.offer_id, rent.reason.code) == ("a2", "notice")
    assert f"the market ends it at {ENDS:%H:%M:%S} UTC; then move to host pool/2" in rent.reason.sentence
    assert "first make sure" not in rent.reason.sentence
    dear = [second_price.pool(2, floor=builders.per_hour("0.75"), inet_down_mbps=1.0)]
    (hold,) = decided(second_price.fleet(leases=(lease,), rows=[row], offers=dear, workloads=(wants,)))
    assert isinstance(hold, Hold)
    assert "12:04:00 UTC" in hold.reason.sentence


def test_a_search_is_due_under_notice() -> None:
    calm = second_price.fleet(leases=(second_price.lease(),), rows=[second_price.row()], workloads=(work(),))
    fleet = second_price.fleet(leases=(under_notice(),), rows=[shown(notice_at=ENDS)], workloads=(work(),))
    assert needs.needs(calm) == ()
    assert len(needs.needs(fleet)) == 1


def test_a_checkpoint_is_asked_for_once_under_notice() -> None:
    lease = under_notice(guard_run=1)
    beat = GuardBeat(version=1, sequence=7, lease=lease.intent_id, phase="running")
    report = GuardReport(builders.NOW, beat, beat_seen_at=builders.NOW)
    fleet = second_price.fleet(
        leases=(lease,), workloads=(builders.guarded(),), guard_reports={lease.intent_id: report}
    )
    (order,) = maintenance_checkpoint.orders(fleet)
    asked_at = ENDS - second_price.RULES.notice
    assert order == (lease.intent_id, last_checkpoint.order_of(lease, asked_at))
    later = msgspec.structs.replace(fleet, now=builders.NOW + timedelta(minutes=1))
    assert tuple(maintenance_checkpoint.orders(later)) == (order,)
    over = msgspec.structs.replace(fleet, now=ENDS)
    assert tuple(maintenance_checkpoint.orders(over)) == ()


def test_the_loss_is_recorded_with_its_notice() -> None:
    lease, row = under_notice(), shown(state=InstanceState.PAUSED)
    first = looked(lease, row)
    fact = changed(looked(lease, row, at=2, memory=first.memory))
    assert fact.kind is EventKind.LEASE_INTERRUPTED
    assert fact.evidence is not None
    assert fact.evidence.notice_at == ENDS
    assert fact.after.notice_at is None


def test_the_first_instant_of_a_notice_stays() -> None:
    told = shown(notice_at=ENDS + timedelta(seconds=20))
    assert looked(under_notice(), told).facts == ()
    moved = shown(notice_at=ENDS + timedelta(minutes=9))
    assert changed(looked(under_notice(), moved)).after.notice_at == moved.notice_at
