"""hedged for a deadline on several markets: from the last call on it rents on demand, whatever runs."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.decide.strategy import NEVER
from agent.domain.market import gpu
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.deadline import Deadline, Progress
from agent.domain.work.decision import Decision, Hold, Pause, Release, Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.strategies.test_hedged_markets import NOW, WORK, decided, offer, on_demand, seen
from tests.support import builders
from tests.support.expiring import tally

NEEDED = 12.0 + (10 + 20 + 1) / 60
"""Hours of work, reserve, start and restore of the workload, in hours, while nothing is done yet."""
OFFERS = [offer(22, "0.66", "0.25"), offer(20, "0.90", "0.45", market="runpod")]


def at(spare: float, *leases: Lease, **changes: Any) -> Decision:
    """Return the decision with so many hours of slack, while the work has not progressed for ten hours."""
    by = Deadline(12.0, NOW + timedelta(hours=NEEDED + spare))
    work = replace(WORK, deadline=by, **changes.pop("work", {}))
    told = Progress("train", 0.0, NOW, builders.ago(hours=10), "start")
    params = changes.pop("params", {})
    return decided(seen(OFFERS, leases, workloads=(work,), progress={"train": told}, **changes), **params)


def bid(**changes: Any) -> Lease:
    values = {"gpu_rate": builders.per_hour("0.20"), "opened_at": builders.ago(hours=6), **changes}
    return builders.lease(1, **values)


STALLED = bid(run_since=builders.ago(hours=5), state_since=builders.ago(hours=5))
LOADING = bid(state=LeaseState.STARTING, state_since=builders.ago(minutes=38), opened_at=builders.ago(minutes=38))


@pytest.mark.parametrize("lease", [STALLED, LOADING])
@pytest.mark.parametrize("spare", [-0.1, -1.5])
def test_a_lease_whose_host_stalls_or_loads_for_long_is_left_at_the_last_call(lease: Lease, spare: float) -> None:
    assert isinstance(at(0.1, lease), Hold)
    made = at(spare, lease)
    assert isinstance(made, Rent), made.reason
    assert (made.tenure, made.offer.host_id) == (Tenure.ON_DEMAND, "h22")
    assert "it must" in made.reason.sentence


@pytest.mark.parametrize("number", [{"leave_after": NEVER}, {"leave_gain": 1.0}])
def test_the_last_call_outranks_a_number_that_keeps_the_lease(number: dict[str, Any]) -> None:
    made = at(-0.1, STALLED, params=number)
    assert isinstance(made, Rent)
    assert made.tenure is Tenure.ON_DEMAND


def test_a_lease_on_demand_runs_on_at_the_last_call() -> None:
    assert isinstance(at(-0.1, on_demand("0.60")), Hold)


def test_the_only_checkpoint_on_a_disk_stays_there_at_the_last_call() -> None:
    bound = {"checkpoint": Checkpoint(place=CheckpointPlace.DISK)}
    assert not isinstance(at(-0.1, STALLED, work=bound), Rent)


@pytest.mark.parametrize("spare", [0.2, -0.1])
def test_a_lease_under_notice_is_replaced_on_demand_once_another_bid_could_not_fail_in_time(spare: float) -> None:
    ending = bid(notice_at=NOW + timedelta(minutes=5), run_since=builders.ago(hours=1))
    made = at(spare, ending)
    assert isinstance(made, Rent), made.reason
    assert made.tenure is Tenure.ON_DEMAND


@pytest.mark.parametrize(
    ("lease", "move"),
    [
        (bid(state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, state_since=builders.ago(minutes=30)), Pause),
        (on_demand("0.60", state=LeaseState.OFFLINE, interrupted_by=Cause.HOST_OFFLINE), Rent),
    ],
)
def test_a_lost_lease_is_replaced_on_demand_at_the_last_call_even_without_a_move_left(
    lease: Lease, move: type[Decision]
) -> None:
    ran = tuple(tally("ran", f"train/0@vast-{number}", NOW + timedelta(hours=number % 20 + 1)) for number in range(24))
    assert isinstance(at(-0.1, lease, tallies=ran), move)


def test_a_move_to_a_bid_that_has_no_time_left_is_given_up() -> None:
    arriving = builders.lease(8, state=LeaseState.STARTING, opened_at=builders.ago(minutes=1), state_since=NOW)
    paused = bid(state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, paused_by_us=True)
    made = at(-0.1, paused, arriving)
    assert isinstance(made, Release), made.reason
    assert (made.lease, made.reason.code) == (arriving, "too_late")
    assert isinstance(at(20.0, paused, arriving), Hold)


@pytest.mark.parametrize(("hours", "host"), [(23.9, "h22"), (12.2, "")])
def test_an_on_demand_lease_that_is_too_slow_is_left_for_an_offer_that_is_in_time(hours: float, host: str) -> None:
    slow, fast = gpu.model("RTX 3090"), builders.RTX_4090
    by = Deadline(12.0, NOW + timedelta(hours=hours), reference_gpu=fast)
    work = replace(WORK, deadline=by, requirements=builders.requirements(gpu_models=(slow, fast)))
    held = on_demand("0.10", gpu=slow, dlperf=40.0)
    asks = [offer(22, "0.66"), offer(20, "0.90", market="runpod")]
    made = decided(seen(asks, [held], workloads=(work,), typical={(fast, 1): 80.0, (slow, 1): 40.0}))
    assert isinstance(made, Rent) == bool(host), made.reason
    if isinstance(made, Rent):
        assert (made.tenure, made.offer.host_id) == (Tenure.ON_DEMAND, host)
        assert "host h1 needs 24.00 h for the rest of the work" in made.reason.sentence
