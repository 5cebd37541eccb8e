"""Bids that we stopped: a cap that forbids their start at their limit lowers it first."""

import msgspec

from agent.decide import plan
from agent.decide.limits import limits
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Decision, Hold, Reason, Rebid, Resume
from agent.domain.work.workload import Workload
from tests.support import builders, second_price


def work() -> Workload:
    return builders.workload(value_per_hour=builders.per_hour("0.80"))


def decided(fleet: Fleet, caps: Limits) -> tuple[Decision, ...]:
    return plan.plan(fleet, second_price.TUNED, caps).decisions


def test_the_limit_of_a_parked_bid_is_cut_before_its_start_if_a_cap_forbids_that() -> None:
    """Else it stays parked for ever, although what it would pay is far below the cap."""
    parked = second_price.lease(state=LeaseState.PAUSED, paused_by_us=True, bid_limit=builders.per_hour("0.79"))
    rows, cap = [second_price.row(state=InstanceState.PAUSED)], Limits(per_hour=builders.per_hour("0.50"))
    (cut,) = decided(second_price.fleet(leases=(parked,), rows=rows, workloads=(work(),)), cap)
    assert isinstance(cut, Rebid)
    assert (cut.lease, cut.bid, cut.reason.code) == (parked, builders.per_hour("0.49"), "start_limit")
    lower = msgspec.structs.replace(parked, bid_limit=cut.bid, bid_since=builders.NOW)
    (start,) = decided(second_price.fleet(leases=(lower,), rows=rows, workloads=(work(),)), cap)
    assert isinstance(start, Resume)
    dear = second_price.pool(floor=builders.per_hour("0.60"))
    (hold,) = decided(second_price.fleet(leases=(parked,), rows=rows, offers=[dear], workloads=(work(),)), cap)
    assert isinstance(hold, Hold), "such a limit would not win"


def test_a_lower_limit_of_a_parked_bid_gives_no_room() -> None:
    parked = second_price.lease(state=LeaseState.PAUSED, paused_by_us=True, bid_limit=builders.per_hour("0.79"))
    before = limits.committed_by_fleet(second_price.fleet(leases=(parked,)))
    assert before.after(Rebid(parked, builders.per_hour("0.10"), Reason("cut", "cut"))) == before


def test_a_raise_that_a_cap_forbids_does_not_hold_back_the_start_of_a_parked_bid() -> None:
    old = builders.ago(hours=1)
    parked = second_price.lease(
        state=LeaseState.PAUSED, paused_by_us=True, bid_limit=builders.per_hour("0.30"), bid_since=old
    )
    rows = [second_price.row(state=InstanceState.PAUSED, limit=builders.per_hour("0.30"))]
    fleet = second_price.fleet(leases=(parked,), rows=rows, workloads=(work(),))
    (start,) = decided(fleet, Limits(per_hour=builders.per_hour("0.31")))
    assert isinstance(start, Resume)
