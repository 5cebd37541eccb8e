"""A release makes room for a rent only if nothing else forbids that rent, and only as the last lease of its slot."""

from datetime import timedelta
from typing import Any

import msgspec

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.decide.moves import break_before_make
from agent.decide.run_times import running_limits
from agent.domain.fleet import Fleet, Spend
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Release, Rent
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import OnChange
from tests.support import builders
from tests.support.scene import strategies

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


# --- a workload whose new file moves it -------------------------------------------------------------------------------
CHANGED = builders.workload(on_change=OnChange.MOVE, image="new:1")
RUNS = builders.lease(spec_digest="old")
MISSING = tuple(
    builders.lease(number, state=LeaseState.MISSING, bills=Bills.GPU_AND_DISK, slot=builders.slot("other", number - 8))
    for number in (8, 9)
)
OTHER = builders.workload("other", slots=2)


def fleet_of(*others: Any, **changes: Any) -> Fleet:
    view = builders.view(instances=(builders.instance(),), offers=(builders.offer(2), builders.offer(3)))
    values: dict[str, Any] = {"workloads": (CHANGED, OTHER), "markets": {"vast": view}, **changes}
    return builders.fleet(leases=(RUNS, *others), **values)


def decided(fleet: Fleet, caps: Limits = builders.NO_LIMITS, *, faulty: frozenset[str] = frozenset()) -> Decision:
    """Return the decision for the slot that the new file moves."""
    made = plan.plan(fleet, strategies(), caps, faulty).decisions
    return next(each for each in made if getattr(each, "slot", RUNS.slot) == RUNS.slot)


def test_a_full_count_is_made_room_for() -> None:
    made = decided(fleet_of(*MISSING), Limits(instances=3))
    assert isinstance(made, Release)
    assert (made.lease, made.reason.code) == (RUNS, "moved")


def test_a_lease_that_has_run_its_time_makes_room_as_one_that_a_new_file_moves() -> None:
    """It ran on for days without a word, since a cap allowed one lease and not two."""
    limit = RunningLimit(timedelta(hours=12), LimitOf.LEASE, AtLimit.MOVE)
    limited = builders.workload(max_running=(limit,))
    over = builders.lease(ran_micros=13 * 3600 * 10**6, has_run=True)
    seen = msgspec.structs.replace(fleet_of(workloads=(limited,)), leases=(over,))
    assert isinstance(decided(seen, Limits(instances=1)), Release)
    (alert,) = running_limits.alerts(seen)
    assert alert.sentence.endswith(
        "13 h of 12 h run; it runs on until another lease is found and allowed (max_running)"
    )


def test_a_market_at_fault_releases_no_healthy_lease() -> None:
    """Nothing is rented there until the listing is complete, so the slot would stay empty."""
    made = decided(fleet_of(*MISSING), faulty=frozenset({"vast"}))
    assert isinstance(made, Hold)
    assert made.reason.limit == "market_fault"
    full = decided(fleet_of(*MISSING), Limits(instances=3), faulty=frozenset({"vast"}))
    assert isinstance(full, Hold)


def test_what_the_lease_has_cost_so_far_makes_no_room_in_a_budget() -> None:
    """It is metered with the release, and the rent would be forbidden by the same cap."""
    owing = msgspec.structs.replace(RUNS, accrued_until=builders.ago(minutes=30))
    spent = Spend(today=builders.usd("0.95"), month=builders.usd("0.95"), total=builders.usd("0.95"))
    fleet = msgspec.structs.replace(fleet_of(spend=spent), leases=(owing,))
    made = decided(fleet, Limits(total=builders.usd("1.20"), reserve=timedelta(hours=1)))
    assert isinstance(made, Hold)
    assert made.reason.limit == "total"


def test_room_that_another_rent_of_this_pass_takes_is_not_made() -> None:
    """Without the cheap old lease there is room for one rent, which an empty slot takes."""
    cheap = msgspec.structs.replace(RUNS, gpu_rate=builders.per_hour("0.05"))
    fleet = fleet_of(workloads=(builders.workload("first"), CHANGED))
    made = plan.plan(
        msgspec.structs.replace(fleet, leases=(cheap,)), strategies(), Limits(per_hour=builders.per_hour("0.30"))
    )
    assert [type(each) for each in made.decisions] == [Rent, Hold]
