"""Shadows beside a live daemon over real HTTP: they decide, are counted, survive a restart, are forgotten in time."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agent.clock import SteppedClock
from agent.decide.strategy import Params, Proposal, Tuned, View
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.paid_time import Phases
from agent.domain.record.shadow_account import Counted, ShadowAccount, ShadowDecision
from agent.domain.slot import Slot
from agent.domain.work.decision import Reason
from agent.ledger.store import Ledger
from agent.ledger.tables import shadow_rows as kept
from agent.ledger.tables.spend_rows import SpendEntry
from agent.web.feed.fleet_document import Sources
from agent.web.page import dashboard
from agent.web.reading import shadow_json
from tests.support.scene import strategies, work
from tests.support.world import Rehearsed, rehearsed

SHADOWED = (work(shadow=("ondemand",)),)


class Numbers(Params):
    """None."""


class Broken:
    """Raises at every view."""

    params: ClassVar[type[Params]] = Numbers

    def propose(self, *_: Any) -> Any:
        raise RuntimeError("broken")


async def told(world: Rehearsed) -> dict[str, Any]:
    """Return the one shadow that the ledger knows, as the page and the verb show it."""
    reader = await world.app.ledger.reader()
    (row,) = (await shadow_json.shown(reader, world.leases(), world.clock.now()))["shadows"]
    return dict(row)


async def test_a_shadow_pays_on_paper_beside_what_really_ran(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=SHADOWED) as world:
        await world.until_running()
        await world.cycle(minutes=60)
        row, spent = await told(world), await world.spend()
        (lease,) = world.leases()
        # It began with nothing and rented the live strategy's offer on demand.
        assert row["rents"] == 1
        assert row["paper"]["useful_hours"] == pytest.approx(0.9, abs=0.15)
        assert row["paper"]["dollars"] > spent > 0, "on demand is dearer than a bid"
        assert row["live"]["dollars"] == pytest.approx(spent, rel=0.02), "as of when the shadow was last written down"
        assert row["live"]["interruptions"] == row["paper"]["interruptions"] == 0
        assert [made["strategy"] for made in row["last"]] == ["ondemand"]
        assert len(world.contracts()) == 1, "nothing was rented for it"
        known = world.app.ledger.recollection(world.clock.now())
        sight = Sources(world.app.rules, world.app.config, known, world.app.seen, world.clock.now())
        shown = await dashboard.board(sight, await world.app.ledger.reader(), 1)
        assert shown["shadows"][0]["strategy"] == "ondemand"
        assert lease.host_id


async def test_a_restart_takes_a_shadow_up_and_a_long_dark_begins_it_anew(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=SHADOWED) as world:
        await world.until_running()
        await world.cycle(minutes=20)
        before = await told(world)
        await world.restart(after_seconds=600)
        await world.cycle(minutes=10)
        after = await told(world)
        assert (after["since"], after["rents"]) == (before["since"], 1)
        assert after["paper"]["dollars"] > before["paper"]["dollars"]
        await world.restart(after_seconds=7200)
        await world.cycle(minutes=10)
        anew = await told(world)
        assert anew["since"] > after["since"]
        assert anew["rents"] == 0, "it began where the live position stood"


@pytest.mark.parametrize("sentence", [object(), 2**70])
async def test_a_strategy_whose_words_cannot_be_written_costs_its_shadow_and_nothing_else(
    tmp_path: Path, sentence: Any
) -> None:
    class Odd(Broken):
        def propose(self, view: View, _: Params) -> Any:
            return [Proposal(seen.slot, None, Reason("odd", sentence)) for seen in view.slots]

    tuned = {**strategies(), "odd": Tuned("odd", Odd(), Numbers(), "o")}
    workloads = (work(shadow=("odd", "ondemand")),)
    async with rehearsed(tmp_path, workloads=workloads, tuned=tuned) as world:
        await world.until_running()
        await world.cycle(minutes=10)
        reader = await world.app.ledger.reader()
        assert "ondemand" in {account.strategy for account in await reader.shadows()}
        assert {made.strategy for made in await reader.shadow_decisions()} == {"ondemand"}


async def test_other_numbers_begin_the_account_anew_after_a_restart_too(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=SHADOWED) as world:
        await world.until_running()
        await world.cycle(minutes=20)
        first = await told(world)
        assert first["digest"] == strategies()["ondemand"].digest
        other = replace(strategies()["ondemand"], digest="other")
        rules = world.app.rules
        world.app.rules = replace(rules, tuned={**rules.tuned, "ondemand": other})
        await world.cycle(minutes=10)
        second = await told(world)
        assert second["digest"] == "other"
        assert second["since"] > first["seen_at"]
        assert 0 <= second["paper"]["dollars"] < first["paper"]["dollars"]
        await world.restart(after_seconds=60)
        await world.cycle(minutes=10)
        assert (await told(world))["digest"] == first["digest"], "the file of the start counts"


async def test_a_strategy_that_raises_costs_its_shadow_and_nothing_else(tmp_path: Path) -> None:
    tuned = {**strategies(), "broken": Tuned("broken", Broken(), Numbers(), "b")}
    workloads = (work(shadow=("broken", "ondemand")),)
    async with rehearsed(tmp_path, workloads=workloads, tuned=tuned) as world:
        await world.until_running()
        await world.cycle(minutes=10)
        assert (await told(world))["strategy"] == "ondemand"


async def test_decisions_are_kept_a_month_and_no_more_than_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "CROWDED", kept.CROWDED.bindparams(kept=3))
    async with rehearsed(tmp_path) as world:
        now = world.clock.now()
        account = ShadowAccount("train", "hedged", now, now, Counted(), Counted())
        ages = (40, 20, 10, 5, 2, 1)
        made = [
            ShadowDecision(now - dt.timedelta(days=age), "hedged", Slot("train", 0), "hold", "c", f"{age}")
            for age in ages
        ]
        async with world.app.ledger.transaction() as tx:
            tx.keep_shadow(account, made)
        await world.app.ledger.tidy()
        reader = await world.app.ledger.reader()
        assert [each.sentence for each in await reader.shadow_decisions("train", "hedged")] == ["1", "2", "5"]
        assert await reader.shadows() == [account]


async def test_a_shadow_that_ended_is_compared_with_its_own_days_alone(tmp_path: Path) -> None:
    now = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
    ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=SteppedClock(now))
    began, ended = now - dt.timedelta(days=3), now - dt.timedelta(days=2)
    before = Counted(Usd(1_000_000), 7_200_000_000, 3_600_000_000, 0)
    async with ledger.transaction() as tx:
        tx.keep_shadow(ShadowAccount("train", "hedged", began, ended, Counted(), before, 0))
        for ago in range(5):
            day = (now - dt.timedelta(days=ago)).date()
            for lease_id, workload in (("vast-1", "train"), ("vast-2", "serve")):
                tx.add_spend(SpendEntry(lease_id, workload, "vast", Tenure.INTERRUPTIBLE, day, gpu=Usd(2_000_000)))
            tx.add_phases(Tenure.INTERRUPTIBLE, Phases("vast-1", day, useful=7_200_000_000))
            at = now - dt.timedelta(days=ago, hours=1)
            tx.append_event(Event(at=at, kind=EventKind.LEASE_INTERRUPTED, workload="train", slot=0))
    (row,) = (await shadow_json.shown(await ledger.reader(), (), now))["shadows"]
    await ledger.close()
    # The days four, three and two ago; sums from before its beginning are subtracted.
    assert row["live"]["dollars"] == 3 * 2.0 - 1.0
    assert row["live"]["paid_hours"] == 3 * 2.0 - 2.0
    assert row["live"]["useful_hours"] == 3 * 2.0 - 1.0
    assert row["live"]["interruptions"] == 1, "the one two days and an hour ago"
