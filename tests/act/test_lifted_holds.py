"""What a resume and the end of a kill lift: never what is done beside something else."""

import pytest

from agent.act.orders import lifted_holds
from agent.act.orders.order_error import OrderError
from agent.decide.reconcile import workload_end
from agent.domain.record.hold import Target, TargetKind, Word
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.order import Order
from agent.domain.work.workload import Workload, WorkloadKind
from tests.act.conftest import Desk
from tests.act.read_orders import lifted, read
from tests.support import builders
from tests.support.expiring import held, rest

LIFTED = "the stop of all spending is lifted: the daemon may rent again"
ENDS = "`gpubid resume TARGET` ends such a hold"
DONE = (Word.DONE, "slot:train/0"), (Word.DONE, "slot:train/1")


@pytest.mark.parametrize("word", [Word.DRAIN, Word.HELD, Word.PAUSE])
async def test_a_workload_that_goes_on_does_not_run_what_is_done_again(desk: Desk, word: Word) -> None:
    """An array that failures stopped names `gpubid resume`, and its finished tasks have been paid for."""
    meant = await read(desk, Order("resume", "train"), rest(word, "workload:train"), *(rest(*each) for each in DONE))
    assert lifted(meant) == ((word, "workload:train"),)
    assert "what is done stays done" in meant.sentence


@pytest.mark.parametrize(
    ("target", "beside"),
    [
        ("train", ("held", "slot:train/1")),
        ("train", ("pause", "lease:vast-1")),
        ("train", ("drain", "workload:train")),
        ("train/0", ("drain", "slot:train/0")),
        ("train/0", ("held", "slot:train/0")),
    ],
)
async def test_whatever_else_a_resume_ends_what_is_done_stays_done(
    desk: Desk, target: str, beside: tuple[str, str]
) -> None:
    meant = await read(desk, Order("resume", target), rest(*beside), *(rest(*each) for each in DONE))
    assert lifted(meant) == (beside,)


@pytest.mark.parametrize(
    "beside",
    [("kill", "fleet:all"), ("pause", "market:vast"), ("lock", "workload:train"), ("kill", "host:vast/h1")],
)
async def test_what_is_done_does_not_run_again_by_an_order_that_means_another_hold(
    desk: Desk, beside: tuple[str, str]
) -> None:
    with pytest.raises(OrderError, match="is in force too: end that first") as caught:
        await read(desk, Order("resume", "train"), rest(*beside), *(rest(*each) for each in DONE))
    assert caught.value.code == "held_elsewhere"


@pytest.mark.parametrize(("target", "lifts"), [("train", set(DONE)), ("train/1", {DONE[1]})])
async def test_what_is_done_runs_again_where_nothing_else_can_be_meant(
    desk: Desk, target: str, lifts: set[tuple[Word, str]]
) -> None:
    locked = rest("lock", "market:runpod")
    meant = await read(desk, Order("resume", target), locked, *(rest(*each) for each in DONE))
    assert set(lifted(meant)) == lifts
    assert "which was done: it runs again" in meant.sentence


async def test_the_tasks_of_an_array_run_again_one_by_one(desk: Desk) -> None:
    array = builders.workload(slots=20, kind=WorkloadKind.BATCH, array=ArrayTerms(8))
    with pytest.raises(OrderError, match="`gpubid resume train/N` runs slot N again") as caught:
        await read(desk, Order("resume", "train"), *(rest(*each) for each in DONE), workloads=(array,))
    assert caught.value.code == "tasks_done"


WHOLE = (Word.DONE, "workload:train")
ARRAY = builders.workload(slots=20, kind=WorkloadKind.BATCH, array=ArrayTerms(8))
FEW = builders.workload(slots=4, kind=WorkloadKind.BATCH)


@pytest.mark.parametrize("work", [ARRAY, FEW], ids=["array", "four slots"])
async def test_what_is_done_as_a_whole_goes_on_and_its_done_slots_stay_done(desk: Desk, work: Workload) -> None:
    """A raised `max_running` names `gpubid resume NAME`, and the finished tasks have been paid for."""
    meant = await read(desk, Order("resume", "train"), rest(*WHOLE), *(rest(*each) for each in DONE), workloads=(work,))
    assert lifted(meant) == (WHOLE,)
    assert meant.sentence.endswith(", which was done: it runs again; 2 of its slots stay done")


async def test_an_array_that_was_called_done_before_any_task_was_goes_on(desk: Desk) -> None:
    meant = await read(desk, Order("resume", "train"), rest(*WHOLE), workloads=(ARRAY,), leases=())
    assert lifted(meant) == (WHOLE,)
    assert meant.sentence == "resume workload:train, which was done: it runs again"


@pytest.mark.parametrize("done", [(), DONE], ids=["open slot", "done slot"])
@pytest.mark.parametrize("verb", ["resume", "retry"])
async def test_a_slot_of_what_is_done_as_a_whole_does_not_begin_alone(
    desk: Desk, done: tuple[tuple[Word, str]], verb: str
) -> None:
    holds = rest(*WHOLE), *(rest(*each) for each in done)
    with pytest.raises(OrderError, match="train is done as a whole, so train/1 would not run: `gpubid resume train`"):
        await read(desk, Order(verb, "train/1"), *holds, workloads=(ARRAY,), leases=())


@pytest.mark.parametrize("beside", [(Word.PAUSE, "workload:train"), (Word.HELD, "slot:train/7")])
async def test_what_is_done_as_a_whole_stays_done_beside_another_hold(desk: Desk, beside: tuple[Word, str]) -> None:
    meant = await read(desk, Order("resume", "train"), rest(*WHOLE), rest(*beside), workloads=(ARRAY,))
    assert lifted(meant) == (beside,)
    assert meant.sentence.endswith("stays done, also train as a whole: `gpubid resume train` again ends that")


async def test_the_end_of_a_kill_ends_nothing_else(desk: Desk) -> None:
    beside = rest("drain", "workload:train"), rest("pause", "workload:train"), *(rest(*each) for each in DONE)
    meant = await read(desk, Order("lift", "train"), rest("kill", "workload:train"), *beside)
    assert lifted(meant) == ((Word.KILL, "workload:train"),)


@pytest.mark.parametrize(("target", "is_doubted"), [("train", True), ("train/0", False)])
async def test_a_resumed_array_has_to_show_anew_that_its_command_works(
    desk: Desk, target: str, is_doubted: bool
) -> None:
    proof = rest("ran", "train"), rest("ran", "train/0@vast-1"), rest("ran", "other")
    held = Target(TargetKind.SLOT if "/" in target else TargetKind.WORKLOAD, target)
    meant = await read(desk, Order("resume", target), rest(Word.HELD, str(held)), *proof)
    assert set(lifted(meant)) == {(Word.HELD, str(held)), *([("ran", "train")] if is_doubted else [])}
    again = rest(Word.HELD, str(held))
    asked = await read(desk, Order("resume", target), again, *proof, workloads=(ARRAY,), leases=())
    assert [each.place for each in asked.adds] == ([("doubted", "train")] if is_doubted else [])


async def test_resume_lifts_what_holds_and_what_was_counted(desk: Desk) -> None:
    rests = [
        rest(Word.PAUSE, "workload:train"),
        rest(Word.DRAIN, "slot:train/1"),
        rest(Word.LOCK, "workload:train"),
        rest("slot", "train/0"),
        rest(workload_end.FAST_EXIT, "train@h1"),
        rest(workload_end.FAST_EXIT, "other@h1"),
        rest("stalled", "train/0"),
        rest("stalled", "other/0"),
    ]
    meant = await read(desk, Order("resume", "train"), *rests)
    assert set(lifted(meant)) == {
        (Word.PAUSE, "workload:train"),
        (Word.DRAIN, "slot:train/1"),
        ("slot", "train/0"),
        (workload_end.FAST_EXIT, "train@h1"),
        ("stalled", "train/0"),
    }


@pytest.mark.parametrize(
    ("holds", "says"),
    [
        ((("kill", "fleet:all"),), LIFTED),
        (
            (("kill", "fleet:all"), ("kill", "workload:train"), ("done", "slot:train/1"), ("lock", "market:vast")),
            f"{LIFTED}; still held: train (kill); {ENDS}",
        ),
        (
            (("kill", "fleet:all"), ("lock", "workload:train")),
            f"{LIFTED}; still held: train (lock); `gpubid unlock TARGET` ends a lock",
        ),
        (
            (("held", "slot:train/0"),),
            f"no kill was in force; still held: train/0 (held); {ENDS}",
        ),
        ((), "no kill was in force"),
    ],
)
def test_the_end_of_a_kill_of_everything_names_what_stays_held(holds: tuple[tuple[str, str], ...], says: str) -> None:
    known = [held(word, target) for word, target in holds]
    assert lifted_holds.end_of_everything(known, builders.NOW) == says
