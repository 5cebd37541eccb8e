"""What an array still costs, by its finished tasks: nothing from fewer than five, and an interval of the median."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.accounting import task_costs
from agent.decide.accounting.task_costs import ArrayFigures, Middle
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.task_account import TaskAccount
from agent.domain.slot import Slot
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.workload import WorkloadKind
from tests.support import builders
from tests.support.builders import NOW, ago, usd

WORK = builders.workload("sweep", kind=WorkloadKind.BATCH, slots=20, array=ArrayTerms(4))


def place(index: int) -> Slot:
    return Slot("sweep", index)


def figures(done: int, live: tuple[Lease, ...] = (), held: tuple[int, ...] = ()) -> ArrayFigures:
    """Return the figures of an array whose finished task number N cost $0.10 + N cents and took an hour."""
    accounts = {place(index): TaskAccount(ago(hours=5), usd("0.10") + usd(index * 0.01)) for index in range(done)}
    accounts |= {lease.slot: TaskAccount(lease.opened_at, usd("0.05")) for lease in live}
    marks = [OperatorHold(Word.DONE, hold.of_slot(place(index)), ago(hours=4), "x") for index in range(done)]
    marks += [OperatorHold(Word.HELD, hold.of_slot(place(index)), ago(hours=4), "x") for index in held]
    return task_costs.figures(WORK, live, marks, accounts, NOW)


def lease(index: int, **changes: object) -> Lease:
    """Build a paused lease, which costs nothing more, rented half an hour ago."""
    values = {"state": LeaseState.PAUSED, "bills": Bills.NOTHING, "opened_at": ago(minutes=30)}
    return builders.lease(index, slot=place(index), **{**values, **changes})


def test_nothing_is_known_before_five_are_done() -> None:
    few = figures(4)
    assert (few.done, few.live, few.held, few.dollars_to_go, few.hours_to_go) == (4, 0, 0, None, None)


def test_five_finished_tasks_say_what_the_others_cost() -> None:
    found = figures(5, live=(lease(9), lease(10)), held=(11,))
    assert (found.slots, found.done, found.live, found.held) == (20, 5, 2, 1)
    # Twelve wait; of the two live ones five cents each are paid already.
    assert found.dollars_to_go is not None
    assert found.dollars_to_go.median == pytest.approx(12 * 0.12 + 2 * 0.07)
    assert (found.dollars_to_go.low, found.dollars_to_go.high) == pytest.approx((12 * 0.1 + 0.1, 12 * 0.14 + 0.18))
    # Twelve whole hours and two halves over four slots at once.
    assert found.hours_to_go is not None
    assert found.hours_to_go.median == pytest.approx(13 / 4)


def test_a_slot_that_cost_nothing_of_ours_says_nothing() -> None:
    """A person may call a slot done that never ran."""
    mark = OperatorHold(Word.DONE, hold.of_workload("sweep"), NOW, "me")
    found = task_costs.figures(WORK, (), [mark], {}, NOW)
    assert (found.done, found.dollars_to_go) == (20, None)


@pytest.mark.parametrize(("number", "rank"), [(5, 0), (7, 0), (8, 1), (20, 5), (100, 41)])
def test_the_interval_of_a_median_has_the_ranks_of_the_binomial_law(number: int, rank: int) -> None:
    values = [float(each) for each in range(number)]
    assert task_costs.middle(values) == Middle((number - 1) / 2, float(rank), float(number - 1 - rank))
    outside = 2 * sum(math.comb(number, each) for each in range(rank + 1)) / 2**number
    assert outside <= 0.1


@given(st.lists(st.floats(0, 1e9), min_size=5, max_size=200))
def test_a_median_is_within_its_interval(values: list[float]) -> None:
    found = task_costs.middle(values)
    assert found is not None
    assert min(values) <= found.low <= found.median <= found.high <= max(values)


def test_the_last_live_tasks_end_when_the_longest_does() -> None:
    found = figures(19, live=(lease(19, opened_at=NOW - timedelta(minutes=12)),))
    assert found.hours_to_go is not None
    assert found.hours_to_go.median == pytest.approx(0.8)


def test_a_renamed_array_keeps_what_its_tasks_have_cost() -> None:
    """It forgot it: its budget counted by the hour again, and began tasks that it could not pay for."""
    old = {Slot("old", index): TaskAccount(ago(hours=5), usd("0.10")) for index in range(6)}
    again = {place(0): TaskAccount(ago(hours=1), usd("0.05"))}
    now = task_costs.renamed(old | again, (replace(WORK, was="old"),))
    assert set(now) == {place(index) for index in range(6)}
    assert now[place(0)] == TaskAccount(ago(hours=5), usd("0.15")), "also for a task that ran under both"
    taken = (replace(WORK, was="old"), builders.workload("old"))
    assert task_costs.renamed(old, taken) == old, "another workload has the old name"
