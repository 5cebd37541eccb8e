"""Empty slots of an array or of a workload with a demand share a row of the page, and a demand shows its numbers."""

import datetime as dt
import json
from pathlib import Path

from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.slot import Slot
from agent.domain.slot_demand import Demand, DemandFrom, DemandReport, HandDemand
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.workload import WorkloadKind
from agent.web.feed import openapi
from agent.web.reading.workload_rows import demand_json
from tests.support import builders, queue_page
from tests.support.builders import NOW
from tests.support.world import work
from tests.web.page import served


async def test_empty_slots_with_one_reason_share_a_row(tmp_path: Path) -> None:
    many = work("sweep", kind=WorkloadKind.BATCH, slots=60, array=ArrayTerms(2))
    async with served(tmp_path, workloads=(many,), running=2) as page:
        now = page.world.clock.now()
        async with page.world.app.ledger.transaction() as tx:
            for index in (10, 11, 12):
                tx.add_expiring(OperatorHold(Word.DONE, hold.of_slot(Slot("sweep", index)), now, "its end"))
            tx.add_expiring(OperatorHold(Word.HELD, hold.of_slot(Slot("sweep", 20)), now, "it ended at once"))
        _, text = await page.get("/")
    rows = text[text.index('<h2 id="slots">') : text.index("<h2>Last day")]
    assert "sweep/2 and 53 more" in rows
    assert "54 empty" in rows
    assert "sweep/10 and 2 more" in rows
    assert "3 done" in rows
    assert "sweep/20 is held: it ended at once" in rows, "a slot that waits for a person keeps its row"
    assert rows.count("<tr>") == 6, "a head, two live slots, one held, the waiting and the done ones"
    assert text.count('<td class="band"') == 3, "of shared rows no day is drawn"
    assert "page 1 of" not in text
    plan = text[text.index("<h2>The last plan") : text.index("<h2>Cooldowns")]
    assert "sweep/2 and 57 more" in plan
    assert plan.count("<tr>") == 4
    holds = text[text.index("<h2>Cooldowns") :]
    assert "done of slot sweep/10 and 2 more" in holds
    assert "a person lifts it" in holds
    assert "3/60 done, 2 live, 1 held" in text


async def test_the_page_and_the_feed_show_the_numbers_of_a_demand(tmp_path: Path) -> None:
    async with queue_page.served() as queue:
        queue.tasks = "7"
        asked = work(slots=6, demand=Demand(1, DemandFrom.HTTP, queue.url, per_slot=4))
        async with served(tmp_path, workloads=(asked,), running=1) as page:
            await page.world.app.demand.settle()
            await page.world.cycle()
            queue.status = 500
            await page.world.cycle(minutes=2)
            await page.world.app.demand.settle()
            await page.world.cycle()
            page.feed.changed()
            (fed,) = json.loads((await page.get(openapi.FLEET_PATH))[1])["demands"]
            _, text = await page.get("/")
    assert (fed["wanted"], fed["least"], fed["most"], fed["live"], fed["tasks"]) == (2, 1, 6, 2, 7)
    assert fed["answered_at"] < fed["silent_since"]
    shown = text[text.index("<h2>Demand</h2>") : text.index("<h2>Money by workload")]
    assert 'class="number">2 <small>of 1 to 6</small>' in shown
    for instant in (fed["answered_at"], fed["silent_since"]):
        assert f'datetime="{dt.datetime.fromisoformat(instant).isoformat()}"' in shown
    assert "no answer since" in shown
    assert "train/2 and 3 more" in text


def test_the_sentence_of_a_demand_says_when_it_was_answered_and_since_when_it_is_silent() -> None:
    asked = builders.workload(slots=6, demand=Demand(1, DemandFrom.HTTP, "http://queue"))
    report = DemandReport(
        3, 3, builders.ago(minutes=9), builders.ago(hours=1), "it answers 503", builders.ago(minutes=8)
    )
    (row,) = demand_json.rows(builders.fleet(workloads=(asked,), demand_reports={"train": report}))
    since, read = builders.ago(minutes=8), builders.ago(minutes=9)
    assert f"no answer since {since:%H:%M} UTC: it answers 503; answered at {read:%H:%M} UTC; 0 live" in row["sentence"]
    hand = HandDemand("train", 5, NOW + dt.timedelta(hours=1))
    (row,) = demand_json.rows(builders.fleet(workloads=(asked,), hand_demands={"train": hand}))
    assert (row["wanted"], row["by_hand_until"], row["answered_at"]) == (5, hand.until.isoformat(), None)
    over = HandDemand("train", 5, NOW)
    (row,) = demand_json.rows(builders.fleet(workloads=(asked,), hand_demands={"train": over}))
    assert row["by_hand_until"] is None
