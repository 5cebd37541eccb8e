"""One commit or none, and the rules a transaction holds."""

import asyncio
import datetime as dt
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agent.clock import SteppedClock
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Hold, Reason
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from agent.ledger.tables import decisions, intent_rows
from agent.ledger.tables.host_rows import Exposure
from agent.ledger.tables.spend_rows import SpendEntry, SpendKey
from agent.ledger.transaction import Transaction
from tests.ledger.values import NOW, heard, intent, lease
from tests.support import engines

pytestmark = pytest.mark.both_engines


async def test_what_is_written_together_is_read_together_after_reopening(path: Path, clock: SteppedClock) -> None:
    ledger = await Ledger.open(engines.place(path), clock=clock)
    async with ledger.transaction() as tx:
        tx.record_intent(intent())
        sent = tx.advance_intent("n1", IntentState.SENT, at=NOW)
        tx.open_lease(lease())
        tx.append_event(Event(NOW, EventKind.LEASE_OPENED, lease_id="l1"))
        tx.add_spend(
            SpendEntry("l1", "train", "vast", Tenure.INTERRUPTIBLE, NOW.date(), gpu=Usd(7), running_seconds=60.0)
        )
        tx.add_expiring(Cooldown(CooldownKind.HOST, "h2", NOW + dt.timedelta(hours=1), "start_failed"))
        tx.add_host_exposure(Exposure("vast", "h1", running_seconds=60.0, starts_ok=1, at=NOW, owner_id="o1"))
    assert sent.sent_at == NOW
    before = ledger.recollection()
    await ledger.close()
    again = await Ledger.open(engines.place(path), clock=clock)
    assert again.recollection() == before
    assert before.leases == (lease(),)
    assert before.intents == (sent,)
    assert before.total.today == Usd(7)
    assert before.hosts_on("vast")["h1"].starts_ok == 1
    assert [event.kind for event in await (await again.reader()).events()] == ["lease.opened"]
    await again.close()


async def test_an_exception_in_the_block_drops_all_of_it(ledger: Ledger) -> None:
    before = ledger.recollection()

    async def fail() -> None:
        async with ledger.transaction() as tx:
            tx.open_lease(lease())
            tx.append_event(Event(NOW, EventKind.LEASE_OPENED))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert ledger.recollection() is before
    reader = await ledger.reader()
    assert await reader.leases() == []
    assert await reader.events() == []


async def test_a_refused_row_drops_the_others_of_its_commit(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.open_lease(lease(1, instance_id="same"))

    async def open_another() -> None:
        async with ledger.transaction() as tx:
            tx.append_event(Event(NOW, EventKind.LEASE_OPENED))
            tx.open_lease(lease(2, instance_id="same"))

    with pytest.raises(LedgerError) as refused:
        await open_another()
    assert refused.value.code is Code.CONFLICT
    assert [held.lease_id for held in ledger.recollection().leases] == ["l1"]
    assert await (await ledger.reader()).events() == []
    async with ledger.transaction() as tx:
        tx.open_lease(lease(3))
    assert len(ledger.recollection().leases) == 2


@pytest.mark.parametrize("paying", [kind for kind in IntentKind if kind.is_paying])
async def test_one_open_paying_intent_per_slot(ledger: Ledger, paying: IntentKind) -> None:
    slot = Slot("train", 1)
    async with ledger.transaction() as tx:
        tx.record_intent(intent(1, slot=slot))
        tx.record_intent(intent(2, slot=slot, kind=IntentKind.RELEASE))
        tx.record_intent(intent(3, slot=Slot("train", 2), kind=paying))
    with pytest.raises(LedgerError) as busy:
        async with ledger.transaction() as tx:
            tx.record_intent(intent(4, slot=slot, kind=paying))
    assert busy.value.code is Code.SLOT_BUSY
    assert "n1" in busy.value.sentence
    async with ledger.transaction() as tx:
        tx.advance_intent("n1", IntentState.VOID, at=NOW)
        tx.record_intent(intent(5, slot=slot, kind=paying))
    assert {held.intent_id for held in ledger.recollection().intents} == {"n2", "n3", "n5"}


@pytest.mark.parametrize("state", [IntentState.RECORDED, IntentState.SENT, IntentState.IN_DOUBT])
async def test_the_engine_itself_refuses_a_second_open_paying_intent(path: Path, state: IntentState) -> None:
    slot = Slot("train", 1)
    first = [
        intent_rows.row(intent(1, slot=slot, state=state)),
        intent_rows.row(intent(2, slot=slot, kind=IntentKind.PAUSE)),
        intent_rows.row(intent(3, slot=slot, state=IntentState.VOID, resolved_at=NOW)),
    ]
    with engines.written(path) as wire:
        await wire.run(lambda link: link.execute(intent_rows.RECORDED, first).close())
        second = intent_rows.row(intent(4, slot=slot, kind=IntentKind.RESUME))
        with pytest.raises(LedgerError) as refused:
            await wire.run(lambda link: link.execute(intent_rows.RECORDED, [second]).close())
        await wire.close()
    assert refused.value.code is Code.CONFLICT


async def test_an_intent_moves_only_as_its_table_allows(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.record_intent(intent())
    with pytest.raises(LedgerError) as refused:
        async with ledger.transaction() as tx:
            tx.advance_intent("n1", IntentState.CONFIRMED, at=NOW)
    assert refused.value.code is Code.BAD_TRANSITION
    async with ledger.transaction() as tx:
        tx.advance_intent("n1", IntentState.SENT, at=NOW)
        tx.advance_intent("n1", IntentState.IN_DOUBT, at=NOW + dt.timedelta(seconds=1), outcome="no answer")
        tx.advance_intent(
            "n1", IntentState.CONFIRMED, at=NOW + dt.timedelta(seconds=2), instance_id="i9", lease_id="l9"
        )
    [kept] = await (await ledger.reader()).intents()
    assert (kept.sent_at, kept.doubted_at) == (NOW, NOW + dt.timedelta(seconds=1))
    assert kept.resolved_at == NOW + dt.timedelta(seconds=2)
    assert (kept.outcome, kept.instance_id, kept.lease_id) == ("no answer", "i9", "l9")
    for repeated in (IntentState.VOID, IntentState.SENT):
        with pytest.raises(LedgerError) as refused:
            async with ledger.transaction() as tx:
                tx.advance_intent("n1", repeated, at=NOW)
        assert refused.value.code is Code.BAD_TRANSITION


async def test_an_intent_or_a_lease_is_new_only_once(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.record_intent(intent(kind=IntentKind.PAUSE))
        tx.open_lease(lease())
    writes: list[Callable[[Transaction], None]] = [
        lambda tx: tx.record_intent(intent(kind=IntentKind.PAUSE)),
        lambda tx: tx.record_intent(intent(2, state=IntentState.SENT)),
        lambda tx: tx.open_lease(lease()),
    ]
    for again in writes:
        with pytest.raises(LedgerError) as refused:
            async with ledger.transaction() as tx:
                again(tx)
        assert refused.value.code is Code.BAD_TRANSITION


async def test_a_lease_changes_state_only_as_its_table_allows(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
        tx.update_lease(lease(state=LeaseState.RELEASING))
    with pytest.raises(LedgerError) as refused:
        async with ledger.transaction() as tx:
            tx.update_lease(lease(state=LeaseState.PAUSED))
    assert refused.value.code is Code.BAD_TRANSITION
    async with ledger.transaction() as tx:
        # A release that has not left is called off.
        tx.update_lease(lease(state=LeaseState.RUNNING))
        tx.update_lease(lease(state=LeaseState.RELEASING))
    ended = lease(state=LeaseState.ENDED, ended_at=NOW)
    async with ledger.transaction() as tx:
        tx.update_lease(ended)
    assert ledger.recollection().leases == ()
    assert await (await ledger.reader()).leases() == [ended]
    with pytest.raises(LedgerError) as refused:
        async with ledger.transaction() as tx:
            tx.update_lease(msgspec.structs.replace(ended, end_reason="again"))
    assert refused.value.code is Code.BAD_TRANSITION


async def test_a_lease_ends_no_earlier_than_it_opened_though_the_clock_was_set_back(ledger: Ledger) -> None:
    held = lease()
    async with ledger.transaction() as tx:
        tx.open_lease(held)
        tx.update_lease(lease(state=LeaseState.ENDED, ended_at=held.opened_at - dt.timedelta(minutes=30)))
    assert [each.ended_at for each in await (await ledger.reader()).leases()] == [held.opened_at]


async def test_money_is_never_negative(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.add_spend(SpendEntry("l9", "train", "vast", Tenure.ON_DEMAND, NOW.date(), gpu=Usd(5)))
    writes: list[Callable[[Transaction], None]] = [
        lambda tx: tx.open_lease(lease(gpu_rate=UsdPerHour(-1))),
        lambda tx: tx.add_spend(SpendEntry("l9", "train", "vast", Tenure.ON_DEMAND, NOW.date(), gpu=Usd(-1))),
        lambda tx: tx.record_intent(intent(price=UsdPerHour(-1))),
    ]
    for wrong in writes:
        with pytest.raises(LedgerError) as refused:
            async with ledger.transaction() as tx:
                wrong(tx)
        assert refused.value.code is Code.CONFLICT
    assert ledger.recollection().total.today == Usd(5)


async def test_values_that_no_column_holds_are_refused_in_our_words(ledger: Ledger) -> None:
    naive = dt.datetime(2026, 1, 1)  # noqa: DTZ001
    for wrong in (lease(opened_at=naive), lease(gpus=2**63), lease(dlperf=float("nan"))):
        with pytest.raises(LedgerError) as refused:
            async with ledger.transaction() as tx:
                tx.open_lease(wrong)
        assert refused.value.code is Code.CONFLICT


async def test_spend_adds_up_by_lease_day_and_tenure(ledger: Ledger) -> None:
    day = NOW.date()
    for _ in range(3):
        async with ledger.transaction() as tx:
            tx.add_spend(
                SpendEntry(
                    "l1", "train", "vast", Tenure.INTERRUPTIBLE, day, gpu=Usd(5), disk=Usd(2), running_seconds=10.0
                )
            )
            tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.ON_DEMAND, day, traffic=Usd(1)))
            tx.add_spend(SpendEntry("l2", "serve", "vast", Tenure.ON_DEMAND, day - dt.timedelta(days=25), gpu=Usd(100)))
    reader = await ledger.reader()
    assert {line.key: line.amount.micros for line in await reader.spend_by(SpendKey.LEASE)} == {"l1": 24, "l2": 300}
    assert [line.key for line in await reader.spend_by(SpendKey.DAY)] == ["2026-10-26", "2026-11-20"]
    assert {line.key: line.amount.micros for line in await reader.spend_by(SpendKey.MONTH)} == {
        "2026-10": 300,
        "2026-11": 24,
    }
    [line] = await reader.spend_by(SpendKey.WORKLOAD, since=day, until=day + dt.timedelta(days=1))
    assert (line.key, line.gpu, line.disk, line.traffic, line.running_seconds) == (
        "train",
        Usd(15),
        Usd(6),
        Usd(3),
        30.0,
    )


async def test_a_rest_is_never_cut_short(ledger: Ledger) -> None:
    long, short = NOW + dt.timedelta(hours=2), NOW + dt.timedelta(hours=1)
    async with ledger.transaction() as tx:
        tx.add_expiring(Cooldown(CooldownKind.HOST, "h1", long, "dead"))
        tx.add_expiring(Cooldown(CooldownKind.HOST, "h1", short, "slow"))
    async with ledger.transaction() as tx:
        tx.add_expiring(Cooldown(CooldownKind.HOST, "h1", short, "slow"))
    [kept] = ledger.recollection().cooldowns
    assert (kept.until, kept.ground) == (long, "dead")


async def test_the_record_of_a_host_adds_up(ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.add_host_exposure(Exposure("vast", "h1", running_seconds=60.0, interruptions=1, at=NOW, owner_id="o1"))
        tx.add_host_exposure(Exposure("vast", "h1", running_seconds=40.0, starts_failed=1, at=NOW))
        tx.add_host_exposure(Exposure("vast", "h1", at=NOW))
    async with ledger.transaction() as tx:
        tx.add_host_exposure(Exposure("vast", "h1", running_seconds=1.0, starts_ok=2, at=NOW))
        tx.add_host_exposure(Exposure("runpod", "h1", running_seconds=5.0, at=NOW))
    hosts = ledger.recollection().hosts
    kept = hosts["vast"]["h1"]
    assert (kept.running_seconds, kept.interruptions, kept.starts_ok, kept.starts_failed) == (101.0, 1, 2, 1)
    assert kept.owner_id == "o1"
    assert hosts["runpod"]["h1"].running_seconds == 5.0
    assert sorted(await (await ledger.reader()).hosts(), key=lambda host: host.market) == [hosts["runpod"]["h1"], kept]


async def test_a_decision_is_kept_when_it_is_another(path: Path, clock: SteppedClock) -> None:
    slot = Slot("train", 0)

    def hold(code: str, sentence: str, digest: str = "d1") -> decisions.RecordedDecision:
        return decisions.recorded(Hold(slot, Reason(code, sentence)), NOW, strategy="patient", params_digest=digest)

    ledger = await Ledger.open(engines.place(path), clock=clock)
    async with ledger.transaction() as tx:
        assert tx.record_decision(hold("running", "runs at $0.20"))
        assert not tx.record_decision(hold("running", "runs at $0.21"))
    await ledger.close()
    ledger = await Ledger.open(engines.place(path), clock=clock)
    async with ledger.transaction() as tx:
        assert not tx.record_decision(hold("running", "runs at $0.22"))
        for sentence in (
            "fewer than 4 slots",
            "fewer than 1 slots",
            "found no offer at all",
            "found no offer at all: why",
        ):
            code = "no_view" if "offer" in sentence else "array_waits"
            assert tx.record_decision(hold(code, sentence)), "what the file or the market says is another reason"
            assert not tx.record_decision(hold(code, sentence))
        assert tx.record_decision(hold("waiting", "waits"))
        assert tx.record_decision(hold("waiting", "waits", digest="d2"))
    assert await (await ledger.reader()).decisions() == [hold("waiting", "waits", digest="d2")]
    await ledger.close()


async def test_transactions_take_turns(ledger: Ledger) -> None:
    async def busy(number: int) -> str:
        try:
            async with ledger.transaction() as tx:
                tx.record_intent(intent(number, slot=Slot("train", 0)))
                await asyncio.sleep(0)
        except LedgerError as error:
            return error.code.value
        return "recorded"

    outcomes = await asyncio.gather(*(busy(number) for number in range(5)))
    assert sorted(outcomes) == ["recorded"] + ["slot_busy"] * 4


async def test_a_cancelled_caller_leaves_memory_and_file_agreed(ledger: Ledger) -> None:
    async def write(number: int) -> None:
        async with ledger.transaction() as tx:
            tx.open_lease(lease(number))

    for number in range(30):
        task = asyncio.ensure_future(write(number))
        for _ in range(number % 6):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        remembered = ledger.recollection()
        assert await (await ledger.reader()).recollection(NOW) == remembered
    assert 0 < len(ledger.recollection().leases) < 30


@pytest.mark.only_sqlite
async def test_saying_what_is_so_already_costs_no_sql(ledger: Ledger) -> None:
    held: Lease = lease()
    async with ledger.transaction() as tx:
        tx.open_lease(held)
        tx.bind_account("vast", "7")
    statements = heard(ledger)
    before = ledger.recollection()
    async with ledger.transaction() as tx:
        tx.update_lease(msgspec.structs.replace(held))
        tx.bind_account("vast", "7")
        tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.ON_DEMAND, NOW.date()))
    assert ledger.recollection() is before
    assert statements == []
    async with ledger.transaction() as tx:
        tx.append_event(Event(NOW, EventKind.LEASE_OPENED))
    assert len(statements) == 3  # BEGIN, the insert and COMMIT: the listener would have seen any of the above
