"""An array's own budget begins no task that it cannot pay to its end, and stops none that runs."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.limits import limits
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet, Spend
from agent.domain.market.tenure import Tenure
from agent.domain.record import budget, hold
from agent.domain.record.budget import Budget, Thresholds
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.task_account import TaskAccount
from agent.domain.slot import Slot
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.decision import Decision, Reason, Rent, Resume
from agent.domain.work.workload import WorkloadKind
from tests.support import builders
from tests.support.builders import ago, usd

SCOPE = budget.of_workload("sweep")
WHY = Reason("code", "sentence")


def place(index: int) -> Slot:
    return Slot("sweep", index)


def rent(index: int) -> Rent:
    offer = builders.offer(50 + index)
    return Rent(place(index), offer, Tenure.INTERRUPTIBLE, builders.per_hour("0.2"), builders.per_hour("0.204"), WHY)


def lease(index: int, **changes: Any) -> Lease:
    """Build a paused lease of a live task."""
    values = {"state": LeaseState.PAUSED, "bills": Bills.NOTHING, "paused_by_us": True}
    return builders.lease(index, slot=place(index), **{**values, **changes})


def fleet(spent: float, *live: tuple[int, float], done: int = 5, each: float = 1.0, **terms: Any) -> Fleet:
    """Build an array whose finished tasks cost `each`, with live tasks as (number, dollars so far)."""
    work = builders.workload("sweep", kind=WorkloadKind.BATCH, slots=50, array=ArrayTerms(None, **terms))
    accounts = {place(index): TaskAccount(ago(hours=9), usd(each)) for index in range(done)}
    accounts |= {place(index): TaskAccount(ago(hours=1), usd(so_far)) for index, so_far in live}
    marks = (OperatorHold(Word.DONE, hold.of_slot(place(index)), ago(hours=1), "x") for index in range(done))
    return builders.fleet(
        workloads=(work,),
        leases=tuple(lease(index) for index, _ in live),
        holds=tuple(marks),
        tasks=accounts,
        spend_of={SCOPE: Spend(total=usd(spent))},
    )


def struck(of: Fleet, *decisions: Decision, cap: float = 10.0, reserve: timedelta = timedelta(hours=1)) -> list[str]:
    """Return the limits that strike decisions of one plan, one after another; empty where none does."""
    caps = Limits(budgets={SCOPE: Budget(Thresholds(total=usd(cap)), Thresholds())}, reserve=reserve)
    standing, found = limits.committed_by_fleet(of), []
    for decision in decisions:
        strike = limits.strike(decision, of, standing, caps, ())
        found.append(strike.limit if strike else "")
        standing = standing if strike else standing.after(decision)
    return found


def test_a_task_begins_if_the_budget_pays_it_and_what_the_live_ones_lack() -> None:
    # Two live tasks lack 60 cents and nothing; the new one costs a dollar.
    live = (7, 0.4), (8, 3.0)
    assert struck(fleet(8.4, *live), rent(9)) == [""]
    assert struck(fleet(8.41, *live), rent(9)) == ["workload_total"]


def test_tasks_that_begin_in_one_plan_count_together() -> None:
    assert struck(fleet(7.5), rent(9), rent(10), rent(11)) == ["", "", "workload_total"]


def test_no_live_task_is_stopped_by_it() -> None:
    of = fleet(9.9, (7, 0.4))
    resume = Resume(of.leases[0], WHY)
    assert struck(of, resume) == [""]
    moves = replace(rent(9), slot=place(7))
    assert struck(of, moves) == [""]
    assert struck(fleet(10.0, (7, 0.4)), resume) == ["workload_total"], "a reached cap stops every paying order"


def test_the_files_estimate_counts_before_five_are_done_at_the_highest_price() -> None:
    assert struck(fleet(8.5, done=4, task_hours=1.5), rent(9)) == [""]
    assert struck(fleet(8.51, done=4, task_hours=1.5), rent(9)) == ["workload_total"]


def test_the_upper_figure_of_estimate_counts_before_five_are_done() -> None:
    def estimated(spent: float, done: int) -> Fleet:
        of = fleet(spent, done=done, task_hours=1.5)
        return msgspec.structs.replace(of, task_estimates={"sweep": usd("0.7")})

    assert struck(estimated(9.3, done=4), rent(9)) == [""]
    assert struck(estimated(9.31, done=4), rent(9)) == ["workload_total"]
    assert struck(estimated(9.01, done=5), rent(9)) == ["workload_total"], "the median is a dollar"


@pytest.mark.parametrize(("reserve", "limit"), [(timedelta(hours=1), "workload_total"), (timedelta(), "")])
def test_the_reserve_counts_by_the_hour_while_nothing_is_known(reserve: timedelta, limit: str) -> None:
    assert struck(fleet(9.9, done=4), rent(9), reserve=reserve) == [limit]


def test_without_a_budget_of_its_own_an_array_has_no_such_reserve() -> None:
    of = fleet(99.0)
    assert limits.strike(rent(9), of, limits.committed_by_fleet(of), Limits(total=usd(200.0)), ()) is None


@given(st.integers(0, 1200), st.lists(st.integers(0, 200), max_size=6), st.integers(1, 6))
def test_what_has_begun_can_be_paid_to_its_end(spent: int, live: list[int], wanted: int) -> None:
    """If every task costs the median, those that are live and those that begin end within the budget."""
    of = fleet(spent / 100, *((10 + index, so_far / 100) for index, so_far in enumerate(live)))
    begun = struck(of, *(rent(20 + index) for index in range(wanted))).count("")
    left = sum(max(100 - so_far, 0) for so_far in live)
    assert not begun or spent + left + 100 * begun <= 1000
