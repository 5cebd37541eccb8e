"""The memory agrees with the file, costs nothing while nothing changes, and turns the day at midnight UTC."""

import asyncio
import datetime as dt
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent.clock import SteppedClock
from agent.domain.market.capacity import Capacity
from agent.domain.market.credit import Credit
from agent.domain.market.gpu import GpuModel
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.hold import EVERYTHING, OperatorHold, Word, of_market, place_of
from agent.domain.record.host_check import HostCheck
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from agent.domain.record.task_account import TaskAccount
from agent.domain.slot import Slot
from agent.domain.work.deadline import Progress, Speed
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.ledger.tables import guard_rows
from agent.ledger.tables.host_rows import Exposure
from agent.ledger.tables.spend_rows import SpendEntry
from agent.ledger.transaction import Transaction
from tests.ledger.values import NOW, heard, intent, lease
from tests.support import engines

few = st.integers(0, 3)
moves = st.one_of(
    st.tuples(st.just("record"), few, few, st.sampled_from(list(IntentKind))),
    st.tuples(st.just("advance"), few, st.sampled_from(list(IntentState))),
    st.tuples(st.just("open"), few, few),
    st.tuples(st.just("update"), few, st.sampled_from(list(LeaseState))),
    st.tuples(st.just("spend"), few, st.integers(0, 40), st.integers(0, 10**9)),
    st.tuples(st.just("cool"), few, st.integers(-3600, 7200)),
    st.tuples(st.just("lift"), few),
    st.tuples(st.just("hold"), few, st.none() | st.integers(-3600, 7200)),
    st.tuples(st.just("unhold"), few),
    st.tuples(st.just("host"), few, st.integers(0, 100)),
    st.tuples(st.just("learn"), few, st.integers(1, 100)),
    st.tuples(st.just("forget"), few),
    st.tuples(st.just("credit"), few, st.integers(0, 100)),
    st.tuples(st.just("tell"), few, st.floats(0, 100)),
    st.tuples(st.just("start"), few),
    st.tuples(st.just("lose"), few, st.integers(0, 100_000)),
    st.tuples(st.just("wait"), st.integers(1, 100_000)),
)


def apply(  # noqa: C901, PLR0912 - one arm a move
    tx: Transaction, move: tuple[Any, ...], now: dt.datetime
) -> None:
    match move:
        case "record", number, slot, kind:
            tx.record_intent(intent(number, slot=Slot("w", slot), kind=kind, recorded_at=now))
        case "advance", number, state:
            tx.advance_intent(f"n{number}", state, at=now)
        case "open", number, instance:
            tx.open_lease(lease(number, instance_id=f"i{instance}", opened_at=now, accrued_until=now))
        case "update", number, state:
            ended = now if state is LeaseState.ENDED else None
            tx.update_lease(lease(number, instance_id=f"i{number}", state=state, ended_at=ended, has_run=True))
        case "spend", number, days, micros:
            day = (now - dt.timedelta(days=days)).date()
            tx.add_spend(SpendEntry(f"l{number}", f"w{number % 2}", "vast", Tenure.ON_DEMAND, day, gpu=Usd(micros)))
        case "cool", number, seconds:
            tx.add_expiring(Cooldown(CooldownKind.HOST, f"h{number}", now + dt.timedelta(seconds=seconds), "slow"))
        case "host", number, seconds:
            tx.add_host_exposure(Exposure("vast", f"h{number}", running_seconds=seconds, at=now))
        case "lift", number:
            tx.lift_expiring(("host", f"h{number}"))
        case "hold", number, seconds:
            until = None if seconds is None else now + dt.timedelta(seconds=seconds)
            tx.add_expiring(OperatorHold(Word.DRAIN, of_market(f"m{number}"), now, "me", until))
        case "unhold", number:
            tx.lift_expiring(place_of(Word.DRAIN, of_market(f"m{number}")))
        case "learn", number, looks:
            tx.keep_capacity(Capacity(True, NOW, now, (-0.5,), market="vast", pool=f"p{number}", looks=looks))
        case "forget", number:
            tx.forget_learned([("vast", f"p{number}")], [("vast", f"h{number}")])
        case "credit", number, cents:
            tx.note_credit(f"m{number}", Credit(Usd(cents * 10_000), now))
        case "tell", number, hours:
            tx.keep_progress(Progress(f"w{number}", hours, now, NOW, "log"))
            tx.add_speed(Speed(f"w{number}", GpuModel("RTX 4090"), hours, 1.0))
        case "start", number if tx._news.lease(f"l{number}") is None:
            """Nothing starts that was never rented."""
        case "start", number:
            tx.append_event(Event(at=now, kind=EventKind.LEASE_RUNNING, lease_id=f"l{number}"))
        case "lose", number, seconds:
            at = now - dt.timedelta(seconds=seconds)
            tx.append_event(
                Event(at=at, kind=EventKind.LEASE_INTERRUPTED, workload="w", slot=number, host_id=f"h{number}")
            )
        case _:
            raise AssertionError(move)


async def assert_memory_is_the_file(path: Path, batches: list[list[tuple[Any, ...]]]) -> None:
    clock = SteppedClock(NOW)
    ledger = await Ledger.open(engines.place(path), clock=clock)
    try:
        for batch in batches:
            try:
                async with ledger.transaction() as tx:
                    for move in batch:
                        if move[0] == "wait":
                            clock.advance(move[1])
                        else:
                            apply(tx, move, clock.now())
            except LedgerError:
                pass
            remembered = ledger.recollection()
            assert remembered == await (await ledger.reader()).recollection(clock.now())
            assert ledger.recollection() is remembered
    finally:
        await ledger.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(moves, max_size=4), max_size=8))
@example([[("host", 1, 60)], [("forget", 1)]])
@example([[("host", 1, 60)], [("forget", 1), ("host", 1, 5)]])
@example([[("host", 1, 60), ("learn", 1, 2)], [("host", 1, 5), ("forget", 1)], [("learn", 1, 3)]])
def test_the_memory_always_equals_the_file(batches: list[list[tuple[Any, ...]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(assert_memory_is_the_file(Path(folder) / "ledger.sqlite", batches))


@pytest.mark.only_sqlite
async def test_quiet_cycles_cost_no_sql_and_hand_out_one_object(ledger: Ledger, clock: SteppedClock) -> None:
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
    statements = heard(ledger)
    seen = set()
    for _ in range(100):
        clock.advance(15)
        seen.add(id(ledger.recollection()))
    assert len(seen) == 1
    assert statements == []


async def test_today_and_this_month_end_at_midnight_utc(ledger: Ledger) -> None:
    day = dt.date(2026, 11, 30)
    async with ledger.transaction() as tx:
        tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.ON_DEMAND, day, gpu=Usd(3)))
        tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.ON_DEMAND, day - dt.timedelta(days=1), disk=Usd(4)))
    midnight = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
    evening = ledger.recollection(midnight - dt.timedelta(microseconds=1))
    assert (evening.total.today, evening.total.month) == (Usd(3), Usd(7))
    assert evening.spend["train"] == evening.total
    december = ledger.recollection(midnight)
    assert (december.total.today, december.total.month) == (Usd(0), Usd(0))
    assert december.spend == {}
    # A clock set back finds the old sums again.
    assert ledger.recollection(midnight - dt.timedelta(hours=30)).total.today == Usd(4)
    async with ledger.transaction() as tx:
        tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.ON_DEMAND, midnight.date(), gpu=Usd(1)))
    assert ledger.recollection(midnight).total.month == Usd(1)


async def test_a_hold_without_an_end_outlives_every_restart_and_every_tidying(path: Path, clock: SteppedClock) -> None:
    kept = (
        OperatorHold(Word.KILL, EVERYTHING, NOW, "a kill by me"),
        OperatorHold(Word.LOCK, of_market("vast"), NOW, "me"),
    )
    first = await Ledger.open(engines.place(path), clock=clock)
    async with first.transaction() as tx:
        for each in (*kept, OperatorHold(Word.PAUSE, of_market("vast"), NOW, "me", NOW + dt.timedelta(days=1))):
            tx.add_expiring(each)
    clock.advance(dt.timedelta(days=50_000).total_seconds())
    await first.tidy()
    assert first.recollection().holds == kept
    await first.close()
    again = await Ledger.open(engines.place(path), clock=clock)
    assert again.recollection().holds == kept
    await again.close()


async def test_a_cooldown_is_gone_the_instant_it_is_over(ledger: Ledger) -> None:
    until = NOW + dt.timedelta(minutes=10)
    async with ledger.transaction() as tx:
        tx.add_expiring(Cooldown(CooldownKind.HOST, "h1", until, "slow"))
        tx.add_expiring(Cooldown(CooldownKind.HOST, "h2", until + dt.timedelta(days=2), "slow"))
    assert [rest.key for rest in ledger.recollection(until - dt.timedelta(microseconds=1)).cooldowns] == ["h1", "h2"]
    assert [rest.key for rest in ledger.recollection(until).cooldowns] == ["h2"]


async def test_what_was_handed_out_does_not_change(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.add_host_exposure(Exposure("vast", "h1", running_seconds=60.0, at=NOW))
    before = ledger.recollection()
    async with ledger.transaction() as tx:
        tx.add_host_exposure(Exposure("vast", "h1", running_seconds=60.0, at=NOW))
        tx.add_host_exposure(Exposure("vast", "h2", running_seconds=60.0, at=NOW))
        tx.bind_account("vast", "7")
    assert list(before.hosts["vast"]) == ["h1"]
    assert before.hosts["vast"]["h1"].running_seconds == 60.0
    assert before.accounts == {}


async def test_a_slot_remembers_the_market_of_the_last_lease_that_ran_there(path: Path) -> None:
    clock = SteppedClock(NOW)
    ledger = await Ledger.open(engines.place(path), clock=clock)
    place = Slot("w", 0)
    for number, market, hours in ((1, "vast", 1), (2, "runpod", 3), (3, "vast", 2)):
        held = lease(number, market=market, instance_id=f"i{number}", slot=place, has_run=True)
        ended = msgspec.structs.replace(held, state=LeaseState.ENDED, ended_at=NOW + dt.timedelta(hours=hours))
        async with ledger.transaction() as tx:
            tx.open_lease(held)
            tx.update_lease(ended)
    assert ledger.recollection().left == {place: "runpod"}
    await ledger.close()
    ledger = await Ledger.open(engines.place(path), clock=clock)
    assert ledger.recollection().left == {place: "runpod"}
    assert ledger.recollection().vacated == {place: NOW + dt.timedelta(hours=3)}
    await ledger.close()


async def test_a_slot_remembers_what_all_its_leases_cost(path: Path) -> None:
    clock = SteppedClock(NOW)
    ledger = await Ledger.open(engines.place(path), clock=clock)
    place, day = Slot("w", 7), NOW.date()
    for number, hours in ((1, 0), (2, 5)):
        held = lease(number, instance_id=f"i{number}", slot=place, opened_at=NOW + dt.timedelta(hours=hours))
        ended = msgspec.structs.replace(held, state=LeaseState.ENDED, ended_at=NOW + dt.timedelta(hours=hours + 1))
        async with ledger.transaction() as tx:
            tx.open_lease(held)
            tx.add_spend(SpendEntry(f"l{number}", "w", "vast", Tenure.ON_DEMAND, day, gpu=Usd(100), disk=Usd(number)))
        async with ledger.transaction() as tx:
            tx.update_lease(ended)
            tx.add_spend(SpendEntry(f"l{number}", "w", "vast", Tenure.ON_DEMAND, day, traffic=Usd(10)))
    account = TaskAccount(NOW, Usd(223))
    assert ledger.recollection().tasks == {place: account}
    await ledger.close()
    ledger = await Ledger.open(engines.place(path), clock=clock)
    assert ledger.recollection().tasks == {place: account}
    await ledger.close()


async def test_figures_of_open_leases_are_never_forgotten_for_those_of_ended_ones(path: Path) -> None:
    def told(number: int) -> GuardFigures:
        at = NOW + dt.timedelta(seconds=number)
        return GuardFigures(f"lease-{number}", Slot("w", number), "vast", "h", 1, 1, at)

    clock = SteppedClock(NOW)
    ledger = await Ledger.open(engines.place(path), clock=clock)
    most = guard_rows.MOST_GUARD_FIGURES
    held = [lease(number, lease_id=f"lease-{number}", slot=Slot("w", number)) for number in range(most + 5)]
    async with ledger.transaction() as tx:
        for each in held:
            tx.open_lease(each)
        for number in range(2 * most + 10):
            tx.keep_guard_figures(told(number))
    kept = {f"lease-{number}" for number in [*range(most + 5), *range(most + 10, 2 * most + 10)]}
    assert set(ledger.recollection().guard_figures) == kept
    await ledger.close()
    ledger = await Ledger.open(engines.place(path), clock=clock)
    assert set(ledger.recollection().guard_figures) == kept
    async with ledger.transaction() as tx:
        tx.update_lease(msgspec.structs.replace(held[0], state=LeaseState.ENDED, ended_at=NOW))
        tx.keep_guard_figures(told(1))
    assert set(ledger.recollection().guard_figures) == kept - {"lease-0"}
    await ledger.close()


async def test_checks_of_open_leases_and_the_last_of_ended_ones_are_remembered(path: Path) -> None:
    def told(number: int) -> HostCheck:
        at = NOW + dt.timedelta(seconds=number)
        return HostCheck(f"lease-{number}", "vast", f"h{number}", "", GpuModel("RTX 4090"), 1, 80.0, at, 100.0)

    ledger = await Ledger.open(engines.place(path), clock=SteppedClock(NOW))
    most = guard_rows.MOST_CHECKS
    async with ledger.transaction() as tx:
        tx.open_lease(lease(0, lease_id="lease-0", slot=Slot("w", 0)))
        for number in range(most + 5):
            tx.keep_host_check(told(number))
    kept = {f"lease-{number}" for number in [0, *range(5, most + 5)]}
    assert set(ledger.recollection().host_checks) == kept
    await ledger.close()
    ledger = await Ledger.open(engines.place(path), clock=SteppedClock(NOW))
    assert set(ledger.recollection().host_checks) == kept
    reader = await ledger.reader()
    assert {each.lease_id for each in await reader.host_checks()} == kept
    await ledger.close()
