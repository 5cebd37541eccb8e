"""A lease that its slot no longer waits for decides nothing for it: it may stand beside the one that replaced it."""

import datetime as dt

import msgspec
import pytest

from agent.decide import needs
from agent.decide.limits import limits, open_bids
from agent.decide.limits.limits import Limits
from agent.decide.moves import break_before_make
from agent.decide.moves.permission import Bounds
from agent.decide.operators import operator_holds
from agent.decide.pricing import cooldowns
from agent.decide.run_times import run_windows
from agent.decide.strategy import Proposal
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.record import budget, hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Hold, Reason, Release, Rent
from agent.domain.work.workload import Workload
from tests.support import builders

SURE = builders.lease(1, state=LeaseState.RELEASING, bills=Bills.NOTHING)
"""Its market confirmed the release, and has not denied the instance yet."""
CALLED_OVER = builders.lease(1, state=LeaseState.RELEASING, bills=Bills.GPU_AND_DISK)
"""Its market calls it over, which is no proof there: a person has to look."""
ROW = builders.instance(1, state=InstanceState.OFFLINE, is_called_over=True)
NEW = builders.lease(2, opened_at=builders.ago(minutes=30))
ENDS = msgspec.structs.replace(NEW, ends_at=builders.NOW + dt.timedelta(minutes=5))
"""Its host leaves the market in five minutes."""
OFFER = builders.offer(3)
LEAVING = pytest.mark.parametrize(("old", "rows"), [(SURE, ()), (CALLED_OVER, (ROW,))], ids=["sure", "called over"])


def fleet_of(rows: tuple[Instance, ...], *leases: Lease, **changes: object) -> Fleet:
    return builders.fleet(leases=leases, markets={"vast": builders.view(instances=rows)}, **changes)


@LEAVING
def test_offers_are_searched_for_a_lease_that_will_be_lost(old: Lease, rows: tuple[Instance, ...]) -> None:
    for leases in ((ENDS,), (old, ENDS)):
        assert [need.workload.name for need in needs.needs(fleet_of(rows, *leases))] == ["train"]
    assert needs.needs(fleet_of(rows, old, NEW)) == ()


@LEAVING
def test_the_release_of_a_lease_that_will_be_lost_makes_room(old: Lease, rows: tuple[Instance, ...]) -> None:
    """Without the lease that will be lost, no limit forbids the rent."""
    reason, ask = Reason("ends_soon", "its host leaves"), builders.per_hour("0.40")
    rent = Rent(builders.TRAIN_0, OFFER, Tenure.ON_DEMAND, None, ask, reason)
    fleet, work = fleet_of(rows, old, ENDS), builders.workload()
    standing = limits.committed_by_fleet(fleet)
    caps = Limits(instances=standing.of(budget.EVERYTHING).instances)
    struck = limits.strike(rent, fleet, standing, caps, ())
    assert struck is not None
    assert struck.limit == "instances"
    held = Hold(builders.TRAIN_0, Reason("limit", struck.sentence, limit=struck.limit))
    wanted = Proposal(builders.TRAIN_0, IntentKind.RENT, reason)
    bounds = Bounds(fleet, caps, frozenset(), cooldowns.in_force(fleet), {work.name: work})
    made = break_before_make.instead(held, wanted, rent, work, bounds, standing)
    assert isinstance(made, Release)
    assert made.lease == ENDS


def test_what_makes_room_waits_while_the_ledger_cannot_be_written() -> None:
    """An old lease that is still being released runs nothing that could go on."""
    moved = Release(ENDS, Reason(break_before_make.MOVED, "no room for two at once"))
    assert break_before_make.makes_room(moved, (SURE, ENDS))
    assert break_before_make.makes_room(moved, (CALLED_OVER, ENDS))


@LEAVING
def test_a_slot_that_only_waits_for_a_release_may_be_shut(old: Lease, rows: tuple[Instance, ...]) -> None:
    drained = OperatorHold(Word.DRAIN, hold.of_workload("train"), builders.NOW, "a person")
    paused = OperatorHold(Word.PAUSE, hold.of_lease(old.lease_id), builders.NOW, "a person")
    fleet = fleet_of(rows, old)
    reason = operator_holds.why_idle(fleet, builders.TRAIN_0, hold.in_force((drained,), fleet.now))
    assert reason is not None
    assert reason.code == "drained"
    assert operator_holds.why_idle(fleet, builders.TRAIN_0, hold.in_force((paused,), fleet.now)) is None


@LEAVING
def test_a_slot_that_only_waits_for_a_release_has_not_begun(old: Lease, rows: tuple[Instance, ...]) -> None:
    work: Workload = builders.workload(not_before=builders.NOW + dt.timedelta(hours=1))
    reason = run_windows.why_idle(fleet_of(rows, old, workloads=(work,)), builders.TRAIN_0)
    assert reason is not None
    assert reason.code == run_windows.NOT_BEFORE


def test_a_bid_is_parked_beside_a_lease_although_a_newer_one_leaves() -> None:
    bid = builders.lease(1, state=LeaseState.PAUSED, bid_limit=builders.per_hour(1), has_run=False)
    gone = builders.lease(3, opened_at=builders.NOW, state=LeaseState.RELEASING, bills=Bills.NOTHING)
    fleet = fleet_of((), bid, NEW, gone)
    assert bid.is_open_bid
    assert [order.lease for order in open_bids.endings(fleet)] == [bid]
    assert list(open_bids.endings(fleet_of((), msgspec.structs.replace(bid, state=LeaseState.RELEASING)))) == []
