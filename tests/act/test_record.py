"""Facts become rows: leases, money, host records, cooldowns and events, all of a cycle or nothing."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from agent.act import record, second_daemon
from agent.decide import plan
from agent.decide.accounting import meter
from agent.decide.accounting.meter import Charge
from agent.decide.facts import Alert, Fact, InstanceFound, IntentSettled, LeaseChanged, LeaseDisowned, Marked
from agent.decide.limits import limits
from agent.decide.paper.paper_ledger import PaperLedger
from agent.decide.pricing import loss_rate
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause, Evidence
from agent.domain.market.outbids import Outbids
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Hold, Reason
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.tables.spend_rows import SpendKey
from tests.act.conftest import Desk
from tests.support import builders
from tests.support.expiring import held as held_back
from tests.support.expiring import tally

WHY = Reason("because", "because")
DAY = builders.NOW.date()


async def opened(desk: Desk, held: Lease | None = None) -> Lease:
    """Put a lease into the ledger."""
    held = held or builders.lease()
    async with desk.ledger.transaction() as tx:
        tx.open_lease(held)
    return held


async def write(desk: Desk, *facts: Fact) -> list[Event]:
    """Record facts; return the events of it, oldest first."""
    await record.record(desk.ledger, builders.fleet(), facts)
    events = await (await desk.ledger.reader()).events()
    return sorted(events, key=lambda event: event.event_id or 0)


async def test_nothing_writes_nothing(desk: Desk) -> None:
    assert await write(desk) == []


async def test_what_a_disowned_lease_counts_is_written_and_not_counted_again(desk: Desk) -> None:
    held = await opened(desk, builders.lease(state=LeaseState.STARTING, proven_at=None))
    later = msgspec.structs.replace(held, accrued_until=builders.NOW + timedelta(minutes=5))
    await write(desk, LeaseDisowned(later, "nowhere", (Charge(held.lease_id, DAY, builders.usd("0.02")),)))
    (ended,) = await (await desk.ledger.reader()).leases()
    assert (ended.state, ended.accrued_until) == (LeaseState.ENDED, later.accrued_until)
    (spent,) = await (await desk.ledger.reader()).spend_by(SpendKey.LEASE)
    assert spent.amount == builders.usd("0.02")


async def test_a_loss_is_written_with_cause_evidence_and_money(desk: Desk) -> None:
    before = await opened(desk)
    after = msgspec.structs.replace(
        before, state=LeaseState.PAUSED, bills=Bills.DISK, interrupted_by=Cause.OUTBID, state_since=builders.NOW
    )
    charge = Charge(before.lease_id, DAY, builders.usd(2), builders.usd("0.1"), builders.usd("0.02"), 3600.0, 1800.0)
    evidence = Evidence("inbox", "the market's inbox says outbid", builders.per_hour("0.305"))
    rest = Cooldown(CooldownKind.HOST, "h1", builders.NOW + timedelta(hours=1), "host_offline")
    fact = LeaseChanged(before, after, EventKind.LEASE_INTERRUPTED, (charge,), Cause.OUTBID, evidence, rest)
    (event,) = await write(desk, fact)
    assert (event.kind, event.cause, event.rule, event.evidence) == (
        "lease.interrupted",
        Cause.OUTBID,
        "inbox",
        "the market's inbox says outbid",
    )
    assert (event.bid, event.floor, event.amount) == (before.gpu_rate, evidence.floor, builders.usd("2.12"))
    assert desk.lease().state is LeaseState.PAUSED
    assert desk.expiring() == {"host:h1": "host_offline"}
    (line,) = await (await desk.ledger.reader()).spend_by(SpendKey.WORKLOAD)
    assert (line.amount, line.running_seconds, line.useful_seconds) == (builders.usd("2.12"), 3600, 1800)
    host = desk.ledger.recollection(desk.clock.now()).hosts_on("vast")["h1"]
    assert (host.interruptions, host.running_seconds, host.starts_ok) == (1, 3600, 0)


@pytest.mark.parametrize("cause", [Cause.OUTBID, Cause.DISPLACED, Cause.HOST_OFFLINE])
async def test_the_ledger_and_the_book_of_a_lab_learn_the_same_of_a_loss(desk: Desk, cause: Cause) -> None:
    before = await opened(desk)
    after = msgspec.structs.replace(
        before, state=LeaseState.PAUSED, bills=Bills.DISK, interrupted_by=cause, state_since=builders.NOW
    )
    evidence = Evidence("inbox", "the market's inbox says outbid", builders.per_hour("0.305"))
    fact = LeaseChanged(before, after, EventKind.LEASE_INTERRUPTED, (), cause, evidence)
    await write(desk, fact)
    (kept,) = desk.ledger.recollection(desk.clock.now()).hosts_on("vast").values()
    lab = PaperLedger()
    lab.learn(fact, builders.NOW, {})
    assert kept == lab.hosts[kept.key]
    assert kept.displaced == (cause is Cause.DISPLACED)
    # A bid of $0.22 on a floor of $0.20, lost to $0.30.
    assert kept.outbids == (Outbids.one(0.1, 0.5) if cause is Cause.OUTBID else Outbids())


@pytest.mark.parametrize("tenure", list(Tenure))
async def test_the_ledger_and_the_book_of_a_lab_weigh_the_same_hours_of_bids_alone(desk: Desk, tenure: Tenure) -> None:
    held = await opened(desk, builders.lease(tenure=tenure, accrued_until=builders.ago(minutes=30)))
    fact = LeaseChanged(
        held, msgspec.structs.replace(held, accrued_until=builders.NOW), None, meter.accrue(held, builders.NOW)
    )
    await write(desk, fact)
    (kept,) = desk.ledger.recollection(desk.clock.now()).hosts_on("vast").values()
    lab = PaperLedger()
    lab.learn(fact, builders.NOW, {})
    assert kept == lab.hosts[kept.key]
    is_bid = tenure is Tenure.INTERRUPTIBLE
    assert kept.weighed_hours == pytest.approx(loss_rate.weighed(0.5, 1.0) if is_bid else 0.0)


async def test_metering_writes_money_and_no_event(desk: Desk) -> None:
    before = await opened(desk)
    charge = Charge(before.lease_id, DAY, builders.usd(1))
    assert await write(desk, LeaseChanged(before, before, None, (charge,))) == []
    (line,) = await (await desk.ledger.reader()).spend_by(SpendKey.LEASE)
    assert line.gpu == builders.usd(1)


async def test_a_first_start_counts_for_its_host(desk: Desk) -> None:
    before = await opened(desk, builders.lease(state=LeaseState.STARTING))
    after = msgspec.structs.replace(before, state=LeaseState.RUNNING, has_run=True)
    await write(desk, LeaseChanged(before, after, EventKind.LEASE_RUNNING))
    host = desk.ledger.recollection(desk.clock.now()).hosts_on("vast")["h1"]
    assert (host.starts_ok, host.interruptions) == (1, 0)


async def test_the_mark_of_a_start_ends_when_it_runs(desk: Desk) -> None:
    before = await opened(desk, builders.lease(state=LeaseState.STARTING))
    mark = tally("started", before.lease_id)
    async with desk.ledger.transaction() as tx:
        tx.add_expiring(mark)
    assert desk.expiring()
    fact = LeaseChanged(before, msgspec.structs.replace(before, state=LeaseState.RUNNING), EventKind.LEASE_RESUMED)
    await record.record(desk.ledger, builders.fleet(tallies=(mark,)), [fact])
    assert not desk.expiring()


async def test_a_start_that_is_dated_before_its_rent_was_answered_took_no_time(desk: Desk) -> None:
    """The look before a start may be older than the answer; a negative time broke the whole cycle's transaction."""
    began = builders.NOW
    before = await opened(desk, builders.lease(state=LeaseState.STARTING, opened_at=began, state_since=began))
    after = msgspec.structs.replace(
        before, state=LeaseState.RUNNING, has_run=True, state_since=began - timedelta(seconds=20)
    )
    await write(desk, LeaseChanged(before, after, EventKind.LEASE_RUNNING))
    host = desk.ledger.recollection(desk.clock.now()).hosts_on("vast")["h1"]
    assert (host.starts_ok, host.loading_seconds) == (1, 0)


async def test_a_doubt_settled_opens_the_lease_it_showed(desk: Desk) -> None:
    intent = builders.intent(7, state=IntentState.RECORDED, sent_at=None)
    async with desk.ledger.transaction() as tx:
        tx.record_intent(intent)
        tx.advance_intent(intent.intent_id, IntentState.SENT, at=builders.NOW)
        tx.advance_intent(intent.intent_id, IntentState.IN_DOUBT, at=builders.NOW)
    made = builders.lease(7, intent_id=intent.intent_id)
    doubted = replace(intent, state=IntentState.IN_DOUBT)
    (event,) = await write(desk, IntentSettled(doubted, IntentState.CONFIRMED, "the listing shows its label", made))
    assert (event.kind, event.lease_id, event.intent_id) == ("intent.confirmed", "vast-7", intent.intent_id)
    assert desk.lease() == made
    (kept,) = await desk.intents()
    assert (kept.state, kept.instance_id, kept.lease_id) == (IntentState.CONFIRMED, "7", "vast-7")


@pytest.mark.parametrize(
    ("kind", "price", "state", "ends"),
    [
        (IntentKind.RESUME, None, IntentState.CONFIRMED, {"resume"}),
        (IntentKind.REBID, "0.30", IntentState.CONFIRMED, {"raise"}),
        (IntentKind.REBID, "0.10", IntentState.CONFIRMED, {"lower"}),
        (IntentKind.RESUME, None, IntentState.VOID, set()),
    ],
)
async def test_an_order_that_a_listing_shows_to_be_done_ends_the_count_of_those_refused_before(
    desk: Desk, kind: IntentKind, price: str | None, state: IntentState, ends: set[str]
) -> None:
    """Only an order whose answer was heard did: the refusals of before still counted against its host."""
    held = await opened(desk, builders.lease(state=LeaseState.PAUSED))
    rate = builders.per_hour(price) if price else None
    intent = builders.intent(7, kind=kind, price=rate, lease_id=held.lease_id, state=IntentState.RECORDED, sent_at=None)
    marks = tuple(tally("untaken", f"{held.lease_id}@{order}") for order in ("resume", "raise", "lower"))
    async with desk.ledger.transaction() as tx:
        for mark in marks:
            tx.add_expiring(mark)
        tx.record_intent(intent)
        for step in (IntentState.SENT, IntentState.IN_DOUBT):
            tx.advance_intent(intent.intent_id, step, at=builders.NOW)
    fleet = builders.fleet(leases=(held,), tallies=marks)
    await record.record(desk.ledger, fleet, [IntentSettled(intent, state, "the listing shows it")])
    left = {rest.partition("@")[2] for rest in desk.expiring()}
    assert left == {"resume", "raise", "lower"} - ends


async def test_a_doubt_that_came_to_nothing_is_void(desk: Desk) -> None:
    intent = builders.intent(7, state=IntentState.RECORDED, sent_at=None)
    async with desk.ledger.transaction() as tx:
        tx.record_intent(intent)
    (event,) = await write(desk, IntentSettled(intent, IntentState.VOID, "no listing showed it within the grace"))
    assert (event.kind, event.reason) == ("intent.void", "rent: no listing showed it within the grace")


@pytest.mark.parametrize("verdict", ["adopt", "hold", "release", "second_daemon"])
async def test_what_was_found_is_an_event_and_a_lease(desk: Desk, verdict: str) -> None:
    made = builders.lease(7)
    (event,) = await write(desk, InstanceFound(builders.instance(7), verdict, made, "seen"))
    assert (event.kind, event.reason_code, event.reason) == ("orphan.seen", verdict, "seen")
    assert desk.lease() == made


@pytest.mark.parametrize("took_place", [True, False])
async def test_facts_whose_commit_failed_are_written_again_only_if_it_did_not_take_place(
    desk: Desk, took_place: bool
) -> None:
    before = builders.lease(7)
    async with desk.ledger.transaction() as tx:
        tx.open_lease(before)
    spent = Charge(before.lease_id, builders.NOW.date(), gpu=builders.usd("0.10"))
    after = msgspec.structs.replace(before, accrued_until=builders.NOW + timedelta(minutes=5))
    facts = (LeaseChanged(before, after, None, (spent,)),)

    def seen() -> Fleet:
        return builders.fleet(leases=desk.ledger.recollection(desk.clock.now()).leases)

    if took_place:
        await record.record(desk.ledger, seen(), facts)
    await record.record_again(desk.ledger, seen(), facts)
    (line,) = await (await desk.ledger.reader()).spend_by(SpendKey.LEASE)
    assert line.amount == builders.usd("0.10")
    assert desk.lease() == after


async def test_an_alert_is_an_event(desk: Desk) -> None:
    (event,) = await write(desk, Alert(EventKind.ALERT_MARKET_FAULT, "vast", "several vanished"))
    assert (event.kind, event.reason) == ("alert.market_fault", "several vanished")


async def test_a_mark_rests_and_tells_what_its_slot_has_cost(desk: Desk) -> None:
    held = await opened(desk)
    await write(desk, LeaseChanged(held, held, None, (Charge(held.lease_id, DAY, builders.usd(2)),)))
    rest = held_back("held", "slot:train/0", "its container ended in trouble")
    (event,) = await write(desk, Marked(rest, "train", held, EventKind.WORKLOAD_HELD, "slot train/0 is held"))
    assert (event.kind, event.slot, event.reason) == ("workload.held", 0, "slot train/0 is held")
    assert event.amount == builders.usd(2)
    assert desk.expiring() == {"held:slot:train/0": "its container ended in trouble"}


async def test_a_mark_tells_all_that_its_slot_has_cost_without_reading_every_lease(desk: Desk) -> None:
    """Each finished slot of a large array read every lease and all spend, inside the pass."""
    fleet = builders.fleet(workloads=(builders.workload(was="night"),))
    first = await opened(desk, builders.lease(1, slot=Slot("night", 0)))
    ended = msgspec.structs.replace(first, state=LeaseState.ENDED, ended_at=builders.NOW)
    spent = (Charge(first.lease_id, DAY, builders.usd(3)),)
    await record.record(desk.ledger, fleet, [LeaseChanged(first, ended, None, spent)])
    held = await opened(desk, builders.lease(2, accrued_until=builders.ago(hours=1)))
    spent = (Charge(held.lease_id, DAY, builders.usd(2)),)
    await record.record(desk.ledger, fleet, [LeaseChanged(held, held, None, spent)])
    await opened(desk, builders.lease(3, slot=Slot("other", 0)))
    rest = held_back("held", "slot:train/0", "its container ended in trouble")
    mark = Marked(rest, "train", held, EventKind.WORKLOAD_HELD, "slot train/0 is held")
    await record.record(desk.ledger, fleet, [mark])
    assert desk.ledger._reader is None, "the memory has the cost of each slot"
    (event,) = await (await desk.ledger.reader()).events(kinds=[EventKind.WORKLOAD_HELD])
    assert event.amount == builders.usd(5) + meter.outstanding([held], builders.NOW), "as `night`, too"


async def test_a_mark_that_only_counts_is_no_event(desk: Desk) -> None:
    rest = tally("fast_exit", "train@h1")
    assert await write(desk, Marked(rest, "train", None, None)) == []
    (event,) = await write(desk, Marked(rest, "train", None, EventKind("workload.exited_fast"), "ended at once"))
    assert (event.slot, event.lease_id, event.amount) == (None, "", None)


async def test_a_fact_that_breaks_a_rule_writes_nothing_of_the_cycle(desk: Desk) -> None:
    unknown = builders.lease(8)
    with pytest.raises(LedgerError):
        await write(
            desk, Alert(EventKind("alert.a"), "a", "a"), LeaseChanged(unknown, unknown, EventKind.LEASE_RUNNING)
        )
    assert await desk.kinds() == []


async def test_a_decision_is_news_once(desk: Desk) -> None:
    hold = Hold(builders.slot(), WHY)
    made = plan.Plan(builders.NOW, (hold,), limits.committed_by_fleet(builders.fleet()), {})
    assert await record.record_plan(desk.ledger, made, [builders.offer()]) == (hold,)
    assert await record.record_plan(desk.ledger, made, []) == ()
    rent = await desk.rent()
    again = replace(made, decisions=(rent,))
    assert await record.record_plan(desk.ledger, again, []) == (rent,)
    assert len(await (await desk.ledger.reader()).prices()) == 1


def test_a_second_daemon_says_why_writing_stops() -> None:
    row = builders.instance(7)
    assert second_daemon.second_daemon([InstanceFound(row, "adopt", builders.lease(1), "adopted")]) == ""
    found = InstanceFound(row, "second_daemon", None, "another daemon runs on this fleet")
    assert second_daemon.second_daemon([found]) == (
        "nothing more is written: another daemon runs on this fleet; stop the wrong one, then start the other again"
    )
