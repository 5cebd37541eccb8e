"""Arrays over the whole program: a wrong command costs few leases, and one poisoned task is held alone."""

from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.hold import Word
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.order import Order
from agent.domain.work.workload import Workload, WorkloadKind
from agent.web.reading.workload_rows import array_json
from tests.support.world import MINUTE, Rehearsed, rehearsed, work

TRACEBACK = "torch.OutOfMemoryError: CUDA out of memory"


def sweep(slots: int, *environment: tuple[str, str], **changes: Any) -> Workload:
    terms = {"kind": WorkloadKind.BATCH, "slots": slots, "array": ArrayTerms(8), "environment": environment}
    return work("sweep", **{**terms, **changes})


def marks(world: Rehearsed, word: Word) -> set[str]:
    known = world.app.ledger.recollection(world.clock.now())
    return {each.target.spoken for each in known.holds if each.word is word}


def said(world: Rehearsed) -> str:
    """Return the line of `gpubid fleet` about the array."""
    now = world.clock.now()
    (row,) = array_json.rows(world.scene.workloads, world.app.ledger.recollection(now), now)
    return str(row["sentence"])


@pytest.mark.parametrize(
    ("environment", "retries"),
    [
        ((("SIM_EXIT_AFTER", "60"),), 0),
        ((("SIM_DONE_AFTER", "300"), ("SIM_DONE_LINE", TRACEBACK)), 0),
        ((("SIM_DONE_AFTER", "300"), ("SIM_DONE_LINE", TRACEBACK)), 9),
    ],
    ids=["at once", "later", "later, tried again"],
)
async def test_a_wrong_command_costs_at_most_four_leases(
    environment: tuple[tuple[str, str], ...], retries: int, tmp_path: Path
) -> None:
    wrong = sweep(50, *environment, array=ArrayTerms(8, retries=retries))
    async with rehearsed(tmp_path, workloads=(wrong,), poll=MINUTE) as world:
        await world.cycle(minutes=120)
        assert 2 <= len(world.contracts()) <= 4
        assert marks(world, Word.HELD)
        billing = [contract for contract in world.live() if contract.holds_gpu]
        assert billing == [], "a GPU bills for a command that fails"


async def test_one_poisoned_task_is_tried_again_and_held_alone(tmp_path: Path) -> None:
    lines = tuple(TRACEBACK if index == 3 else "done" for index in range(6))
    one_bad = sweep(6, ("SIM_DONE_AFTER", "700"), values=(("SIM_DONE_LINE", lines),), array=ArrayTerms(2, retries=1))
    async with rehearsed(tmp_path, workloads=(one_bad,)) as world:
        await world.until(lambda: len(marks(world, Word.DONE)) == 5, minutes=240)
        await world.cycle(minutes=5)
        assert marks(world, Word.HELD) == {"sweep/3"}
        indices = [int(contract.env["GPUBID_SLOT"]) for contract in world.contracts()]
        assert sorted(indices) == [0, 1, 2, 3, 3, 4, 5]
        assert said(world) == "5/6 done, 0 live, 1 held"
        assert [event.slot for event in await world.events("workload.task_failed")] == [3, 3]


async def test_a_person_calls_a_held_task_done_and_the_work_after_it_begins(tmp_path: Path) -> None:
    lines = (TRACEBACK, "done")
    first = sweep(2, ("SIM_DONE_AFTER", "300"), values=(("SIM_DONE_LINE", lines),), array=ArrayTerms(1))
    then = work("publish", after=("sweep",))
    async with rehearsed(tmp_path, workloads=(first, then)) as world:
        await world.until(lambda: marks(world, Word.HELD) == {"sweep/0"}, minutes=60)
        await world.app.say(Order("done", "sweep/0"), "a test")
        await world.until(lambda: {lease.slot.workload for lease in world.leases()} == {"publish"}, minutes=60)
        assert marks(world, Word.DONE) == {"sweep/0", "sweep/1"}
        assert [contract.env["GPUBID_WORKLOAD"] for contract in world.contracts()] == ["sweep", "sweep", "publish"]


async def test_a_slot_that_waits_says_the_present_reason(tmp_path: Path) -> None:
    asked = sweep(6, ("SIM_DONE_AFTER", "never"), array=ArrayTerms(3))
    async with rehearsed(tmp_path, workloads=(asked,)) as world:
        reader = await world.app.ledger.reader()
        await world.cycle()
        (told,) = await reader.decisions([asked.places[5]])
        assert told.reason.code == "array_unproven"
        await world.cycle(minutes=15)
        (told,) = await reader.decisions([asked.places[5]])
        assert told.reason.sentence == "it begins when fewer than 3 slots of sweep are live"
