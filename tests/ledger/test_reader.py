"""The answers of a reader, and that it never writes."""

import asyncio
import datetime as dt
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.clock import SteppedClock
from agent.domain.market.gpu import GpuModel
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.slot import Slot
from agent.domain.work.decision import Reason
from agent.ledger import reader
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from agent.ledger.tables import decisions
from agent.ledger.tables.decisions import RecordedDecision
from agent.ledger.tables.spend_rows import SpendEntry
from tests.ledger.values import NOW, intent, lease, sample
from tests.support import engines

HOUR = dt.timedelta(hours=1)


async def test_events_narrow_by_time_workload_kind_and_number(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        for hour in range(6):
            kind = "lease.interrupted" if hour % 2 else "lease.running"
            tx.append_event(Event(NOW + hour * HOUR, EventKind(kind), workload="train" if hour < 4 else "serve"))
    reading = await ledger.reader()

    async def hours(**narrow: object) -> list[float]:
        found = await reading.events(**narrow)  # type: ignore[arg-type]
        return [(event.at - NOW) / HOUR for event in found]

    assert await hours() == [5, 4, 3, 2, 1, 0]
    assert await hours(limit=2) == [5, 4]
    assert await hours(since=NOW + 2 * HOUR, until=NOW + 4 * HOUR) == [3, 2]
    assert await hours(workload="train", kinds=["lease.interrupted"]) == [3, 1]
    assert await hours(kinds=["lease.interrupted", "lease.running"], workload="serve") == [5, 4]
    assert await hours(workload="nobody") == []


async def test_values_are_made_on_the_ledgers_thread_and_a_wrong_row_is_told_as_it_is(ledger: Ledger) -> None:
    reading = await ledger.reader()
    threads = await reading._all(sa.select(sa.literal(1)), lambda _: threading.current_thread().name)
    assert threads[0].startswith("ledger-ro")

    def refused(_: object) -> None:
        raise ValueError("no such value")

    with pytest.raises(ValueError, match="no such value"):
        await reading._all(sa.select(sa.literal(1)), refused)
    assert await reading.events() == []


async def test_reports_wait_for_each_other_and_nothing_else_waits_for_them(ledger: Ledger) -> None:
    began = []

    async def second() -> None:
        async with ledger.archive() as reading:
            began.append(await reading.events())

    async with ledger.archive() as first:
        waiting = asyncio.create_task(second())
        assert await (await ledger.reader()).events() == await first.events() == []
        assert began == []
    await waiting
    assert began == [[]]


async def test_the_first_day_of_the_last_lines_keeps_days_whole(ledger: Ledger) -> None:
    days = [NOW.date() - dt.timedelta(days=back) for back in range(4)]
    async with ledger.transaction() as tx:
        for number in range(3):
            tx.open_lease(lease(number))
            for day in days:
                entry = SpendEntry(lease(number).lease_id, "train", "vast", Tenure.ON_DEMAND, day, gpu=Usd(1))
                tx.add_spend(entry)
    reading = await ledger.reader()
    found = [await reading.first_day_within(most, None, None) for most in (12, 11, 6, 5, 1)]
    assert found == [None, days[2], days[1], days[0], days[0]]
    assert await reading.first_day_within(3, days[3], days[1]) == days[2]


async def test_an_event_keeps_cause_evidence_and_money(ledger: Ledger) -> None:
    event = Event(
        at=NOW,
        kind=EventKind.LEASE_INTERRUPTED,
        seen_at=NOW + HOUR,
        workload="train",
        slot=0,
        lease_id="l1",
        host_id="h1",
        cause=Cause.OUTBID,
        rule="inbox",
        evidence="the market wrote: outbid",
        bid=UsdPerHour(200_000),
        floor=UsdPerHour(250_000),
        amount=Usd(1_234),
        notice_at=NOW,
    )
    async with ledger.transaction() as tx:
        tx.append_event(event)
        tx.append_event(Event(NOW, EventKind.LEASE_PAUSED))
    [later, first] = await (await ledger.reader()).events()
    assert (first.event_id, later.event_id) == (1, 2)
    assert (first.cause, first.rule, first.floor, first.amount) == (event.cause, "inbox", event.floor, event.amount)
    assert first.notice_at == NOW
    assert first.observation == f"the market wrote: outbid; the market had said that it ends at {NOW:%H:%M:%S}"
    assert (later.notice_at, later.observation) == (None, "")


async def test_prices_narrow_by_market_model_host_and_time(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.observe_prices([sample(), sample(host_id="h2", gpu=GpuModel("A100"), at=NOW + HOUR)])
    reading = await ledger.reader()
    assert [one.host_id for one in await reading.prices()] == ["h2", "h1"]
    assert [one.host_id for one in await reading.prices(gpu=GpuModel("A100"), market="vast")] == ["h2"]
    assert [one.host_id for one in await reading.prices(host_id="h1")] == ["h1"]
    assert [one.host_id for one in await reading.prices(since=NOW + HOUR)] == ["h2"]
    assert [one.host_id for one in await reading.prices(until=NOW + HOUR, limit=5)] == ["h1"]


async def test_a_reader_sees_each_commit_and_cannot_write(ledger: Ledger, path: Path) -> None:
    other = await reader.open_reader(engines.place(path))
    assert await other.leases() == []
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
        tx.record_intent(intent())
    assert await other.leases() == [lease()]
    assert await other.intents() == [intent()]
    with pytest.raises(LedgerError) as caught:
        await other._tables.run(lambda link: link.execute(sa.text("DELETE FROM leases")).close())
    assert caught.value.code is Code.UNWRITABLE
    await other.close()


async def test_a_reader_of_a_closed_ledger(path: Path, clock: SteppedClock) -> None:
    ledger = await Ledger.open(engines.place(path), clock=clock)
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
    known = ledger.recollection()
    await ledger.close()
    other = await reader.open_reader(engines.place(path))
    assert await other.recollection(NOW) == known
    assert (await other.meta())["fleet_id"] == ledger.fleet_id
    await other.close()


async def test_old_leases_and_intents_are_found_by_name_beyond_the_limit(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        for number in range(5):
            tx.open_lease(lease(number, opened_at=NOW + number * HOUR))
            tx.record_intent(intent(number, recorded_at=NOW + number * HOUR))
    reading = await ledger.reader()
    assert [held.lease_id for held in await reading.leases(limit=2)] == ["l4", "l3"]
    assert [held.lease_id for held in await reading.leases(instances={"i0", "i1", "gone"}, limit=2)] == ["l1", "l0"]
    assert await reading.leases(instances=()) == []
    assert [held.intent_id for held in await reading.intents(limit=2)] == ["n4", "n3"]
    assert [held.intent_id for held in await reading.intents(ids=["n0"])] == ["n0"]


@pytest.mark.only_sqlite
async def test_the_last_decision_of_named_slots_is_found_by_its_index(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        for number in range(12):
            place = Slot("train" if number % 3 else "serve", number % 4)
            tx.record_decision(RecordedDecision(NOW, place, "hold", Reason(f"code_{number}", "waits")))
    reading = await ledger.reader()
    every = await reading.decisions()
    named = [Slot("train", 1), Slot("serve", 3), Slot("nobody", 0), Slot("train", 9)]
    assert await reading.decisions(named) == [made for made in every if made.slot in named] != []
    assert await reading.decisions([]) == []
    query = decisions.last_of(named).compile(ledger._tables._connection, compile_kwargs={"literal_binds": True})
    steps = await reading._tables.run(lambda link: link.execute(sa.text(f"EXPLAIN QUERY PLAN {query}")).fetchall())
    assert not any("SCAN decisions" in str(step) for step in steps), steps
