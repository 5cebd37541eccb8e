"""The line about an array in `gpubid fleet`, and its keys."""

import json
from pathlib import Path

from agent.cli.watch import fleet
from agent.decide.accounting.task_costs import ArrayFigures, Middle
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.workload import WorkloadKind
from agent.ledger.memory import Memory
from agent.web.feed import openapi
from agent.web.reading import verb_json
from agent.web.reading.workload_rows import array_json
from tests.support import builders, contract
from tests.support.builders import NOW
from tests.support.world import work
from tests.web.page import served

WORK = builders.workload("sweep", kind=WorkloadKind.BATCH, slots=100, array=ArrayTerms(8))


def test_the_sentence_has_what_is_done_and_what_is_to_go() -> None:
    money, hours = Middle(11.4, 9.8, 14.2), Middle(9.04, 8.0, 11.0)
    assert array_json.sentence(ArrayFigures(100, 37, 8, 2, money, hours)) == (
        "37/100 done, 8 live, 2 held, about $11.40 ($9.80 to $14.20) and 9.0 h (8.0 to 11.0) to go"
    )
    assert array_json.sentence(ArrayFigures(100, 4, 8, 0, None, None)) == (
        "4/100 done, 8 live, 0 held; to go: not known before 5 are done"
    )
    little = Middle(0.004, 0.003, 0.009)
    assert array_json.sentence(ArrayFigures(100, 99, 1, 0, little, little)) == (
        "99/100 done, 1 live, 0 held, under $0.01 and under 0.1 h to go"
    )
    assert array_json.sentence(ArrayFigures(100, 98, 0, 2, money, hours)) == "98/100 done, 0 live, 2 held"


def test_only_arrays_have_a_row_and_it_has_the_documented_keys() -> None:
    known = Memory().recollection(NOW)
    (row,) = array_json.rows((builders.workload(), WORK), known, NOW)
    assert row["sentence"].startswith("0/100 done")
    documented = {key.path for key in contract.sections()["fleet"] if key.path.startswith("arrays[]")}
    assert {f"arrays[].{key}" for key in row} == documented


def test_slots_that_are_empty_for_one_reason_share_a_line_and_finished_ones_have_none() -> None:
    memory = Memory()
    done = OperatorHold(Word.DONE, hold.of_slot(builders.slot("sweep", 0)), NOW, "its end")
    memory.put_expiring({done.place: done})
    shown = verb_json.fleet((WORK,), memory.recollection(NOW), (), NOW)
    assert list(fleet._in_order(shown)) == []
    reasons = list(fleet._reasons(shown))
    assert reasons == ["sweep/1 and 98 more: no cycle has decided about it yet"]


async def test_the_page_and_the_feed_show_an_array(tmp_path: Path) -> None:
    pair = work("sweep", kind=WorkloadKind.BATCH, slots=2, array=ArrayTerms(2))
    async with served(tmp_path, workloads=(pair,)) as page:
        _, shown = await page.get("/")
        _, fed = await page.get(openapi.FLEET_PATH)
    sentence = "0/2 done, 2 live, 0 held; to go: not known before 5 are done"
    assert f"<strong>sweep</strong>: {sentence}" in shown
    assert [each["sentence"] for each in json.loads(fed)["arrays"]] == [sentence]
