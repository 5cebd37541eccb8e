"""Which tasks of an array may begin: few until one works, the lowest number first, and never one that is done."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import needs, plan
from agent.decide.arrays import array_window
from agent.decide.limits.limits import Limits
from agent.decide.reconcile.tasks import array_proof
from agent.domain.fleet import Fleet
from agent.domain.market.market_rules import ASSUMED
from agent.domain.money import Usd
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.record.task_account import TaskAccount
from agent.domain.slot import Slot
from agent.domain.work.array_terms import ArrayTerms, TaskOrder
from agent.domain.work.decision import Hold, Rent, slot_of
from agent.domain.work.guard_report import GuardBeat, GuardReport
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import WorkloadKind
from strategies.patient import Patient, PatientParams
from tests.support import builders
from tests.support.builders import ago

NOW = builders.NOW
TUNED = {"patient": builders.tuned(Patient(), PatientParams())}
SLOTS = 20


def place(index: int) -> Slot:
    return Slot("sweep", index)


def lease(index: int, **changes: Any) -> Lease:
    """Build the lease of a task; it has run for an hour."""
    return builders.lease(index + 1, slot=place(index), **changes)


def mark(word: Word, index: int) -> OperatorHold:
    return OperatorHold(word, hold.of_slot(place(index)), NOW, "its end")


def fleet(*leases: Lease, at_once: int | None = 4, order: TaskOrder = TaskOrder.INDEX, **changes: Any) -> Fleet:
    """Build an array of 20 tasks before a market of 40 hosts."""
    work = builders.workload("sweep", kind=WorkloadKind.BATCH, slots=SLOTS, array=ArrayTerms(at_once, order))
    offers = tuple(builders.offer(number) for number in range(101, 141))
    rows = tuple(builders.instance(int(each.instance_id), host_id=each.host_id) for each in leases)
    markets = {"vast": builders.view(offers=offers, instances=rows)}
    return builders.fleet(**{"workloads": (work,), "leases": leases, "markets": markets, **changes})


def begun(of: Fleet) -> list[int]:
    """Return the numbers of the tasks that the plan rents for."""
    decisions = plan.plan(of, TUNED, Limits()).decisions
    return [each.slot.index for each in decisions if isinstance(each, Rent)]


def why(of: Fleet, index: int) -> tuple[str, str]:
    decisions = plan.plan(of, TUNED, Limits()).decisions
    reasons = {slot_of(each): each.reason for each in decisions if isinstance(each, Hold)}
    return reasons[place(index)].code, reasons[place(index)].sentence


def test_the_first_two_tasks_begin_alone() -> None:
    assert begun(fleet()) == [0, 1]
    sentence = "until a slot of sweep is done or its container has run for 10 min, at most 2 are live"
    assert why(fleet(), 2) == ("array_unproven", sentence)


@pytest.mark.parametrize(("minutes", "more"), [(9, []), (10, [2, 3])])
def test_a_task_that_has_run_for_ten_minutes_lets_the_others_begin(minutes: int, more: list[int]) -> None:
    young = [lease(index, run_since=NOW - timedelta(minutes=minutes)) for index in (0, 1)]
    assert begun(fleet(*young)) == more


BEAT = GuardBeat(1, 1, "1", "running")
FAILED = GuardBeat(1, 1, "1", "failed")


@pytest.mark.parametrize(
    ("minutes", "changes", "beat", "ready", "more"),
    [
        (10, {}, None, Readiness(), []),
        (23, {}, None, Readiness(), []),
        (25, {}, None, Readiness(), [2, 3]),
        (25, {"guard_run": 1}, None, Readiness(), []),
        (25, {"guard_run": 1}, BEAT, Readiness(), [2, 3]),
        (25, {"guard_run": 1}, FAILED, Readiness(), []),
        (10, {"guard_run": 1}, BEAT, Readiness(), []),
        (60, {}, None, Readiness(ReadySign.PORT, port=8000), []),
        (60, {"ready_since": builders.ago(minutes=9)}, None, Readiness(ReadySign.PORT, port=8000), []),
        (12, {"ready_since": builders.ago(minutes=10)}, None, Readiness(ReadySign.PORT, port=8000), [2, 3]),
    ],
    ids=[
        "loads",
        "loaded, and has run for 9 minutes",
        "has run for 10 minutes",
        "its guard is silent",
        "its guard reports",
        "its work failed",
        "its guard reports at once",
        "not ready",
        "ready for 9 minutes",
        "ready for 10 minutes",
    ],
)
def test_where_a_market_shows_no_container_the_loading_of_the_image_proves_nothing(
    minutes: int, changes: dict[str, Any], beat: GuardBeat | None, ready: Readiness, more: list[int]
) -> None:
    """An image of 20 GB is assumed to load within about 14 minutes."""
    since = NOW - timedelta(minutes=minutes)
    leases = [lease(index, run_since=since, state_since=since, **changes) for index in (0, 1)]
    of = fleet(*leases)
    view = msgspec.structs.replace(of.markets["vast"], rules=msgspec.structs.replace(ASSUMED, shows_container=False))
    work = replace(of.workloads[0], image_gb=20.0, ready=ready)
    reports = {each.intent_id: GuardReport(NOW, beat) for each in leases}
    assert begun(msgspec.structs.replace(of, markets={"vast": view}, workloads=(work,), guard_reports=reports)) == more


def test_a_task_that_is_done_lets_the_others_begin_and_never_begins_again() -> None:
    after_one = fleet(holds=(mark(Word.DONE, 0),))
    assert begun(after_one) == [1, 2, 3, 4]
    assert why(after_one, 5) == ("array_waits", "it begins when fewer than 4 slots of sweep are live")


@pytest.mark.parametrize(("minutes", "more"), [(30, [1, 2]), (90, [1, 2, 3, 4])], ids=["before", "after"])
def test_what_was_done_before_a_person_resumed_the_array_proves_nothing_of_its_command(
    minutes: int, more: list[int]
) -> None:
    """Eight tasks began with a command that was wrong by then, at each resume."""
    done = replace(mark(Word.DONE, 0), since=ago(minutes=10))
    doubt = array_proof.doubt("sweep", ago(minutes=minutes))
    tasks = {place(0): TaskAccount(ago(hours=1), Usd(0))}
    assert begun(fleet(holds=(done,), tallies=(doubt,), tasks=tasks)) == more


def test_what_goes_on_over_a_resume_leaves_room_for_two_that_prove_the_command() -> None:
    """Three kept tasks of a day filled the places of the first two, and five others waited for them."""
    kept = [lease(index, opened_at=ago(hours=5)) for index in range(3)]
    doubt = array_proof.doubt("sweep", ago(minutes=40))
    resumed = fleet(*kept, at_once=8, tallies=(doubt,))
    assert begun(resumed) == [3, 4]
    assert why(resumed, 5)[1].endswith("at most 2 are live beside the 3 from before its resume")
    assert begun(fleet(*kept, at_once=4, tallies=(doubt,))) == [3]
    old = msgspec.structs.replace(kept[0], state=LeaseState.RELEASING, bills=Bills.NOTHING)
    new = {"opened_at": ago(minutes=9), "run_since": ago(minutes=5)}
    again = [builders.lease(at + 11, slot=place(at), **new) for at in (0, 1)]
    assert begun(fleet(old, *again, at_once=8, tallies=(doubt,))) == [], "two that began since then"
    proof = lease(3, opened_at=ago(minutes=30), run_since=ago(minutes=11))
    assert begun(fleet(*kept, proof, at_once=8, tallies=(doubt,))) == [4, 5, 6, 7]


def test_what_may_bill_counts_as_live() -> None:
    paused = lease(3, state=LeaseState.PAUSED, run_since=None, bills=Bills.DISK)
    missing = lease(4, state=LeaseState.MISSING)
    doubt = builders.intent(50, slot=place(5), state=IntentState.IN_DOUBT, host_id="h150")
    leaving = lease(6, state=LeaseState.RELEASING)
    marks = (mark(Word.DONE, 0),)
    assert begun(fleet(paused, missing, at_once=3, holds=marks)) == [1]
    assert begun(fleet(missing, leaving, at_once=3, intents=(doubt,), holds=marks)) == []


def test_an_instance_with_the_label_of_a_task_counts_as_live() -> None:
    of = fleet(at_once=1, holds=(mark(Word.DONE, 0),))
    view = msgspec.structs.replace(of.markets["vast"], labels={"77": builders.label(77, place=place(9))})
    assert begun(msgspec.structs.replace(of, markets={"vast": view})) == []


def test_a_held_task_is_held_alone_once_another_works() -> None:
    poisoned = lease(1, state=LeaseState.PAUSED, paused_by_us=True, run_since=None, bills=Bills.DISK)
    others = [lease(index) for index in (0, 2, 3)]
    assert begun(fleet(poisoned, *others, holds=(mark(Word.HELD, 1),))) == [4]
    # While it still bills its GPU it is live.
    billing = lease(1, state=LeaseState.EXITED)
    assert begun(fleet(billing, *others, holds=(mark(Word.HELD, 1),))) == []


def test_two_held_tasks_stop_an_array_of_which_nothing_worked_yet() -> None:
    assert begun(fleet(holds=(mark(Word.HELD, 0), mark(Word.HELD, 1)))) == []
    gone = (mark(Word.HELD, SLOTS), mark(Word.HELD, SLOTS + 1))
    assert begun(fleet(holds=gone)) == [0, 1], "marks of slots that an earlier file had stopped it for good"


def test_a_task_that_is_paused_at_its_own_max_running_frees_its_place() -> None:
    """The rest of the array never ran, as if the paused ones were at work."""
    stopped = {"state": LeaseState.PAUSED, "paused_by_us": True, "run_since": None, "bills": Bills.DISK}
    over = [lease(index, has_run=True, ran_micros=13 * 3600 * 10**6, **stopped) for index in range(4)]
    of, proof = fleet(*over), Tally(Counted.RAN, "sweep", NOW, NOW + timedelta(days=30), "it worked")
    limit = RunningLimit(timedelta(hours=12), LimitOf.LEASE, AtLimit.PAUSE)
    limited = (replace(of.workloads[0], max_running=(limit,)),)
    assert begun(msgspec.structs.replace(of, workloads=limited, tallies=(proof,))) == [4, 5, 6, 7]


def test_a_slot_in_a_cooldown_keeps_its_place() -> None:
    rests = builders.fleet().cooldowns
    of = fleet(at_once=2, holds=(mark(Word.DONE, 0),), cooldowns=rests)
    assert begun(of) == [1, 2]


def test_a_purse_alone_bounds_an_array_once_the_cost_of_a_task_is_known() -> None:
    assert begun(fleet(at_once=None)) == [0, 1]
    few, enough = tuple(mark(Word.DONE, index) for index in range(4)), tuple(mark(Word.DONE, each) for each in range(5))
    accounts = {place(index): TaskAccount(NOW, builders.usd(1)) for index in range(5)}
    assert begun(fleet(at_once=None, holds=few, tasks=accounts)) == list(range(4, 12))
    assert begun(fleet(at_once=None, holds=enough, tasks=accounts)) == list(range(5, SLOTS))


def test_a_shuffled_array_begins_in_one_order_only() -> None:
    of = fleet(order=TaskOrder.RANDOM, at_once=SLOTS, holds=(mark(Word.DONE, 0),))
    order = [each.index for each in ArrayTerms(order=TaskOrder.RANDOM).ordered(of.workloads[0].places)]
    assert sorted(order) == list(range(SLOTS)) != order
    shuffled = fleet(order=TaskOrder.RANDOM, at_once=3, holds=(mark(Word.DONE, order[0]),))
    assert sorted(begun(shuffled)) == sorted(order[1:4])


def test_tasks_that_wait_need_no_search() -> None:
    wanted = needs.needs(fleet(lease(0, run_since=NOW), lease(1, run_since=NOW)))
    assert wanted == ()


def test_work_begins_only_after_the_work_before_it_is_done() -> None:
    first = builders.workload("prepare", kind=WorkloadKind.BATCH, slots=2)
    then = builders.workload("sweep", slots=2, after=("prepare",))
    marks = [OperatorHold(Word.DONE, hold.of_slot(Slot("prepare", index)), NOW, "its end") for index in (0, 1)]

    def rented(*holds: OperatorHold, before: int = 2) -> set[str]:
        works = replace(first, slots=before), then
        decisions = plan.plan(fleet(workloads=works, holds=holds), TUNED, Limits()).decisions
        return {str(each.slot) for each in decisions if isinstance(each, Rent)}

    assert rented() == {"prepare/0", "prepare/1"}
    assert rented(marks[1]) == {"prepare/0"}
    assert rented(*marks) == {"sweep/0", "sweep/1"}
    assert rented(OperatorHold(Word.DONE, hold.of_workload("prepare"), NOW, "me")) == {"sweep/0", "sweep/1"}
    assert rented(before=0) == set(), "a parked workload is never done"
    half_done = fleet(workloads=(first, then), holds=(marks[0],))
    assert why(half_done, 1) == ("waits_for_workload", "it begins when every slot of prepare is done")
    assert {place for need in needs.needs(half_done) for place in need.key} == {"prepare/1"}


STATES = (LeaseState.STARTING, LeaseState.RUNNING, LeaseState.PAUSED, LeaseState.MISSING, LeaseState.RELEASING)


@given(
    states=st.dictionaries(st.integers(0, SLOTS - 1), st.sampled_from(STATES), max_size=8),
    doubts=st.sets(st.integers(0, SLOTS - 1), max_size=4),
    done=st.sets(st.integers(0, SLOTS - 1), max_size=12),
    at_once=st.integers(1, 10),
)
def test_at_most_so_many_are_live_the_lowest_first_and_none_that_is_done(
    states: dict[int, LeaseState], doubts: set[int], done: set[int], at_once: int
) -> None:
    leases = [lease(index, state=state) for index, state in states.items()]
    intents = [builders.intent(60 + index, slot=place(index), host_id=f"h{200 + index}") for index in doubts]
    marks = [mark(Word.DONE, index) for index in done]
    of = fleet(*leases, at_once=at_once, intents=tuple(intents), holds=tuple(marks))
    starts = begun(of)
    live = states.keys() | doubts
    assert not set(starts) & done
    assert not starts or len(live | set(starts)) <= at_once
    waits = {each.index for each in array_window.waiting(of, of.workloads[0], hold.in_force(of.holds, NOW))}
    empty = sorted(set(range(SLOTS)) - live - done)
    assert empty == [*(each for each in empty if each not in waits), *sorted(waits)]
    assert not set(starts) & waits
