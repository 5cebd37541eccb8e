"""A slot that never ran falls back after its time without a lease, however often the program restarts meanwhile."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent.decide import first_sights
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import Fallback, Workload
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from tests.support import builders
from tests.support.world import MINUTE, START, STILL, rehearsed, work

BID_FOR_NOTHING = HedgedParams(ceiling=0.01, on_demand_share=1.0)
TUNED = {"hedged": builders.tuned(Hedged(), BID_FOR_NOTHING, "hedged")}
FALLING_BACK = builders.workload("fit", slots=2, fallback=Fallback(("dstack",)))
WORK = work(strategy="hedged", max_price=money.per_hour("1.2"))


@pytest.mark.parametrize("later", [WORK, replace(WORK, name="fit", was="train")], ids=["the same name", "renamed"])
async def test_a_restart_does_not_begin_the_wait_anew(tmp_path: Path, later: Workload) -> None:
    async with rehearsed(tmp_path, climate=STILL, workloads=(WORK,), tuned=TUNED, poll=MINUTE) as world:
        await world.cycle(minutes=12)
        assert not world.leases()
        for _ in range(2):
            world.config = replace(world.config, workloads=(later,))
            await world.restart(60.0)
            await world.cycle(minutes=6)
        assert [lease.tenure for lease in world.leases()] == [Tenure.ON_DEMAND]
        assert world.app.ledger.recollection(world.clock.now()).first_seen.keys() == {later.name}


async def test_a_workload_that_was_away_begins_anew(tmp_path: Path) -> None:
    other = replace(WORK, name="other", slots=0)
    async with rehearsed(tmp_path, climate=STILL, workloads=(WORK,), tuned=TUNED, poll=MINUTE) as world:
        await world.cycle(minutes=15)
        for workloads in ((other,), (WORK,)):
            world.config = replace(world.config, workloads=workloads)
            await world.restart(60.0)
            await world.cycle(minutes=6)
        assert not world.leases()


def test_what_is_recorded_stays_while_the_file_has_the_workload() -> None:
    first, later = START, START + timedelta(hours=1)
    works = (builders.workload("fit", was="train"), builders.workload("new"))
    found = first_sights.of(works, {"train": first, "gone": first}, {"fit": later, "new": later})
    assert found == {"fit": first, "new": later}
    slots = first_sights.of((FALLING_BACK,), {"fit": first}, {"fit": later, "fit/0": later, "fit/1": later})
    assert slots == {"fit": first, "fit/0": first, "fit/1": first}, "the fallback markets are new, not the slots"
    added = first_sights.of((FALLING_BACK,), {"fit": first, "fit/0": first}, dict.fromkeys(slots, later))
    assert added == {"fit": first, "fit/0": first, "fit/1": later}
    changes = first_sights.news({"train": first, "gone": first}, found)
    assert changes == {"fit": first, "new": later, "train": None, "gone": None}
    assert first_sights.news(found, found) == {}
