"""The possible cost of a lease is never counted short, and nothing is counted twice, whatever its looks show."""

import itertools
from datetime import timedelta

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.lease import Bills, LeaseState
from tests.support import builders

POLL = timedelta(seconds=15)
BEGAN = builders.NOW
WORK = builders.workload()
ROWS = st.builds(
    lambda state, may_bill: builders.instance(state=state, may_bill_gpu=may_bill, is_wanted_running=True),
    st.sampled_from(list(InstanceState)),
    st.booleans(),
)
SILENT = builders.instance(state=InstanceState.OFFLINE, may_bill_gpu=True, is_wanted_running=True)
LATE = builders.instance(is_wanted_running=True)


def polls(number: float) -> float:
    """Return micro-dollars of GPUs in so many polls."""
    return LATE.gpu_rate.over(number * POLL.total_seconds()).micros


def counted(rows: list[Instance]) -> int:
    """Return micro-dollars of GPUs that are counted when a lease that runs is seen so, one look a poll."""
    held = builders.lease(has_run=True, accrued_until=BEGAN, run_since=BEGAN, state_since=BEGAN)
    memory, micros, now = Memory(), 0, BEGAN
    for look, row in enumerate(rows, start=1):
        now = BEGAN + look * POLL
        view = msgspec.structs.replace(
            builders.view(instances=(row,)), listed_at=now, listed_monotonic=15.0 * look, listings=look
        )
        fleet = msgspec.structs.replace(
            builders.fleet(workloads=(WORK,), leases=(held,), markets={"vast": view}), now=now
        )
        result = reconcile.reconcile(fleet, memory)
        memory = result.memory
        for fact in result.facts:
            if isinstance(fact, LeaseChanged):
                micros += sum(charge.gpu.micros for charge in fact.charges)
                held = fact.after
    if held.bills is Bills.GPU_AND_DISK:
        micros += held.gpu_rate.over((now - held.accrued_until).total_seconds()).micros
    return micros


@given(st.lists(ROWS, min_size=1, max_size=25))
@example([LATE, SILENT, SILENT, SILENT, LATE])
@example([builders.instance(state=InstanceState.PAUSED)] * 3 + [builders.instance(state=InstanceState.UNKNOWN)] * 9)
def test_time_that_may_be_charged_at_both_ends_of_it_is_counted_whole_and_once(rows: list[Instance]) -> None:
    may_cost = [True, *(row.bills_gpu for row in rows)]
    least = sum(first and second for first, second in itertools.pairwise(may_cost))
    found, rounding = counted(rows), len(rows)
    assert polls(least) - rounding <= found <= polls(len(rows)) + rounding


def test_a_host_that_is_silent_is_offline_and_paid_for_until_its_market_says_that_it_is_not() -> None:
    free = billed(SILENT, may_bill_gpu=False)
    assert counted([LATE] * 4 + [SILENT] * 16) == pytest.approx(polls(20), abs=2)
    assert counted([LATE] * 4 + [SILENT] * 8 + [free] * 8) == pytest.approx(polls(13), abs=2)


def billed(row: Instance, *, may_bill_gpu: bool) -> Instance:
    """Return a row that differs from another by its billing alone."""
    return builders.instance(state=row.state, may_bill_gpu=may_bill_gpu, is_wanted_running=True)


def test_a_silent_host_is_an_interruption_although_it_is_paid_for() -> None:
    held = builders.lease(has_run=True)
    view = builders.view(instances=(SILENT,))
    fleet = builders.fleet(workloads=(WORK,), leases=(held,), markets={"vast": view})
    memory = reconcile.reconcile(fleet, Memory()).memory
    (fact,) = [one for one in reconcile.reconcile(fleet, memory).facts if isinstance(one, LeaseChanged)]
    assert (fact.kind, fact.after.state, fact.after.bills) == (
        "lease.interrupted",
        LeaseState.OFFLINE,
        Bills.GPU_AND_DISK,
    )
    assert fact.after.run_since is None
