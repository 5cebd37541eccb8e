"""record, send, resolve: each step durable before the next, every outcome as the market proved it."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.operators import reload
from agent.decide.pricing import cooldowns
from agent.decide.reconcile import billed_times, outcomes
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.decision import Hold, Pause, Reason, Rebid, Release, Resume
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.tables.spend_rows import SpendKey
from agent.markets import market_errors
from tests.act.conftest import WHY, Desk, label_of
from tests.support import builders


async def test_a_rent_becomes_a_lease_under_its_own_label(desk: Desk) -> None:
    decision = await desk.rent()
    intent = await desk.send(decision)
    held = desk.lease()
    assert intent.state is IntentState.CONFIRMED
    assert (intent.instance_id, intent.lease_id, held.intent_id) == (held.instance_id, held.lease_id, intent.intent_id)
    assert (held.state, held.bills, held.slot) == (LeaseState.STARTING, Bills.DISK, decision.slot)
    assert held.gpu_rate == decision.bid
    assert held.spec_digest == reload.spec_digest(desk.work)
    (contract,) = await desk.contracts()
    assert contract["label"] == label_of(intent)
    assert contract["is_bid"] is True
    assert await desk.kinds() == ["lease.opened"]
    assert f"slot:{decision.slot}" in desk.expiring()


async def test_an_on_demand_rent_asks_for_no_bid(desk: Desk) -> None:
    decision = await desk.rent()
    on_demand = replace(decision, tenure=Tenure.ON_DEMAND, bid=None)
    await desk.send(on_demand)
    (contract,) = await desk.contracts()
    assert contract["is_bid"] is False


async def test_recorded_and_sent_are_durable_before_the_request(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    rent = desk.vast.rent

    async def watching(*said: Any) -> str:
        seen.extend(intent.state.value for intent in await desk.intents())
        return await rent(*said)

    monkeypatch.setattr(desk.vast, "rent", watching)
    await desk.send(await desk.rent())
    assert seen == ["sent"]


async def test_a_bid_under_the_floor_is_rejected_and_what_it_left_is_to_be_released(desk: Desk) -> None:
    decision = await desk.rent(over=0.5)
    intent = await desk.send(decision)
    assert (intent.state, intent.outcome) == (IntentState.REJECTED, "bid_too_low")
    left = desk.lease()
    assert (left.state, left.instance_id) == (LeaseState.RELEASING, intent.instance_id)
    assert await desk.kinds() == ["intent.rejected", "lease.leftover"]
    (told,) = await (await desk.ledger.reader()).events(leases=[left.lease_id])
    assert told.kind == "lease.leftover"
    assert desk.expiring()[f"offer:{decision.offer.key}"] == "a bid that was too low"


@pytest.mark.parametrize("is_leftover", [False, True])
async def test_a_reply_that_names_what_had_a_lease_is_doubt(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, is_leftover: bool
) -> None:
    """The second lease of one instance broke the ledger's rule of one id, and with it every later cycle."""
    held = await desk.rented()

    async def misnamed(*_: Any) -> str:
        if is_leftover:
            raise market_errors.Rejected("bid_too_low", "too low", held.instance_id)
        return held.instance_id

    decision = replace(await desk.rent(), slot=builders.slot("train", 1))
    monkeypatch.setattr(desk.vast, "rent", misnamed)
    intent = await desk.send(decision)
    assert intent.state is IntentState.IN_DOUBT
    assert desk.lease() == held


async def test_an_offer_that_refuses_bids_again_and_again_rests_ever_longer(desk: Desk) -> None:
    decision = await desk.rent(over=0.5)
    rests = []
    for _ in range(4):
        await desk.send(decision)
        known = desk.ledger.recollection(desk.clock.now()).cooldowns
        (until,) = (each.until for each in known if each.kind == "offer")
        rests.append(round((until - desk.clock.now()).total_seconds() / 60))
        desk.clock.advance((until - desk.clock.now()).total_seconds() + 1)
    assert rests == [2, 4, 8, 10]


async def test_a_taken_offer_is_rejected_and_rests(desk: Desk) -> None:
    decision = await desk.rent()
    await desk.market.rented(int(decision.offer.offer_id), None)
    intent = await desk.send(decision)
    assert intent.state is IntentState.REJECTED
    assert f"offer:{decision.offer.key}" in desk.expiring()
    assert desk.ledger.recollection(desk.clock.now()).leases == ()


@pytest.mark.parametrize("fault", ["server_error_before", "server_error_after", "reset", "malformed", "html_403"])
async def test_whatever_is_no_proof_is_doubt_and_sent_once(desk: Desk, fault: str) -> None:
    decision = await desk.rent()
    await desk.market.weather(fault, route="PUT /asks", probability=1.0, seconds=600)
    intent = await desk.send(decision)
    assert intent.state is IntentState.IN_DOUBT
    assert await desk.kinds() == ["intent.in_doubt"]
    assert len([path for path in await desk.writes() if "/asks/" in path]) == 1
    # Doubt holds its slot: another paying order is refused before it is sent.
    with pytest.raises(LedgerError):
        await desk.journal.carry_out(decision, desk.work)
    assert len([path for path in await desk.writes() if "/asks/" in path]) == 1


@pytest.mark.parametrize("fault", ["throttle_text", "throttle_json", "throttle_retry_after"])
async def test_a_throttle_is_proof_that_nothing_was_done(desk: Desk, fault: str) -> None:
    decision = await desk.rent()
    await desk.market.weather(fault, route="PUT /asks", probability=1.0, seconds=600)
    intent = await desk.send(decision)
    assert (intent.state, intent.outcome) == (IntentState.REJECTED, "throttled")
    assert await desk.contracts() == []


async def test_a_denied_intent_is_never_sent(desk: Desk) -> None:
    decision = await desk.rent()
    desk.denial.append("a second daemon runs on this fleet")
    intent = await desk.send(decision)
    assert (intent.state, intent.outcome) == (IntentState.DENIED, desk.denial[0])
    assert await desk.writes() == []


async def test_a_rent_of_a_workload_nobody_knows_is_not_sent(desk: Desk) -> None:
    intent = await desk.journal.carry_out(await desk.rent(), None)
    assert intent is not None
    assert (intent.state, intent.outcome) == (IntentState.REJECTED, "no_workload")
    assert await desk.writes() == []


async def test_a_hold_is_nothing(desk: Desk) -> None:
    assert await desk.journal.carry_out(Hold(builders.slot(), WHY), desk.work) is None
    assert await desk.intents() == []


async def test_a_bid_is_changed_and_the_old_one_remembered(desk: Desk) -> None:
    held = await desk.rented()
    await desk.advance(60)
    bid = held.gpu_rate + builders.per_hour("0.05")
    intent = await desk.send(Rebid(held, bid, WHY))
    after = desk.lease()
    assert intent.state is IntentState.CONFIRMED
    assert (after.gpu_rate, after.recent_bids, after.bid_since) == (bid, (held.gpu_rate,), desk.clock.now())
    (contract,) = await desk.contracts()
    assert contract["bid"] == pytest.approx(bid.dollars, abs=1e-4)


async def test_refused_bids_are_forgotten_when_one_is_taken(desk: Desk) -> None:
    held = await desk.rented()
    bid = held.gpu_rate + builders.per_hour("0.05")
    await desk.market.weather("invalid_request", route="PUT /instances/bid_price", probability=1.0, seconds=600)
    intent = await desk.send(Rebid(held, bid, WHY))
    assert (intent.state, intent.outcome) == (IntentState.REJECTED, "invalid_args")
    assert [rest for rest in desk.expiring() if rest.startswith(f"untaken:{held.lease_id}@")]
    await desk.market.control("DELETE", "/weather")
    await desk.send(Rebid(held, bid, WHY))
    assert not [rest for rest in desk.expiring() if rest.startswith("untaken:")]


async def test_a_pause_keeps_the_disk_and_a_resume_starts_it_again(desk: Desk) -> None:
    held = await desk.rented()
    await desk.advance(900)
    await desk.send(Pause(held, WHY))
    paused = desk.lease()
    assert (paused.state, paused.paused_by_us, paused.bills) == (LeaseState.PAUSED, True, Bills.DISK)
    await desk.send(Resume(paused, WHY))
    resumed = desk.lease()
    assert (resumed.state, resumed.paused_by_us) == (LeaseState.STARTING, False)
    assert f"started:{held.lease_id}" in desk.expiring(), "until it runs, nothing shows that the start had an effect"
    assert (await desk.kinds())[-2:] == ["lease.paused", "lease.starting"]


async def test_a_release_is_a_promise_before_it_is_sent_and_ends_nothing_by_itself(desk: Desk) -> None:
    held = await desk.rented()
    await desk.market.weather("server_error_before", route="DELETE /instances", probability=1.0, seconds=600)
    intent = await desk.send(Release(held, Reason("moved", "the workload runs on another host")))
    assert intent.state is IntentState.IN_DOUBT
    doubted = desk.lease()
    assert (doubted.state, doubted.end_reason) == (LeaseState.RELEASING, "moved")
    await desk.market.control("DELETE", "/weather")
    await desk.send(Release(doubted, WHY))
    gone = desk.lease()
    assert (gone.state, gone.bills, gone.end_reason) == (LeaseState.RELEASING, Bills.NOTHING, "moved")
    assert (await desk.market.truth())["billing_now"] == []


async def test_a_host_rests_although_its_release_got_no_answer(desk: Desk) -> None:
    """What confirms it later is a repeated release or the listing; neither knows why the host was left."""
    held = await desk.rented()
    await desk.market.weather("server_error_before", route="DELETE /instances", probability=1.0, seconds=600)
    await desk.send(Release(held, Reason("start_overdue", "loading since 00:00, which is too long")))
    await desk.market.control("DELETE", "/weather")
    await desk.send(Release(desk.lease(), Reason("release_again", "the market has not confirmed the release")))
    known = desk.ledger.recollection(desk.clock.now())
    assert [rest.key for rest in known.cooldowns if rest.kind == "host"] == [str(held.host)]
    assert known.hosts_on("vast")[held.host_id].starts_failed == pytest.approx(1, abs=0.001), "counted once"


async def test_a_release_of_what_is_gone_is_done(desk: Desk) -> None:
    held = await desk.rented()
    await desk.vast.release(held.instance_id)
    intent = await desk.send(Release(held, WHY))
    assert intent.state is IntentState.CONFIRMED


async def test_an_order_on_what_is_gone_is_rejected(desk: Desk) -> None:
    held = await desk.rented()
    await desk.vast.release(held.instance_id)
    intent = await desk.send(Rebid(held, held.gpu_rate + builders.per_hour("0.05"), WHY))
    assert intent.state is IntentState.REJECTED


@pytest.mark.parametrize(
    ("code", "span"),
    [
        ("start_failed", cooldowns.START_FAILED),
        ("start_overdue", cooldowns.START_FAILED),
        ("mismatch", None),
        ("moved", None),
    ],
)
async def test_a_host_that_was_left_for_a_reason_rests(desk: Desk, code: str, span: Any) -> None:
    held = await desk.rented()
    await desk.send(Release(held, Reason(code, "for this reason")))
    known = desk.ledger.recollection(desk.clock.now())
    (rest,) = [rest for rest in known.cooldowns if rest.kind == "host"]
    assert rest.key == str(held.host)
    if span is not None:
        assert rest.until == desk.clock.now() + span
        assert known.hosts_on("vast")[held.host_id].starts_failed == 1


async def test_a_host_released_for_no_fault_of_its_own_does_not_rest(desk: Desk) -> None:
    held = await desk.rented()
    await desk.send(Release(held, Reason("ordered", "by a person")))
    assert not any(key.startswith("host:") for key in desk.expiring())


async def test_what_ran_is_charged_when_it_is_stopped(desk: Desk) -> None:
    held = await desk.rented()
    runs = msgspec.structs.replace(
        held, state=LeaseState.RUNNING, bills=Bills.GPU_AND_DISK, run_since=desk.clock.now(), has_run=True
    )
    async with desk.ledger.transaction() as tx:
        tx.update_lease(runs)
    await desk.advance(1800)
    await desk.send(Pause(runs, WHY))
    (line,) = await (await desk.ledger.reader()).spend_by(SpendKey.WORKLOAD)
    assert line.running_seconds == 1800
    assert line.useful_seconds == 1740
    assert line.gpu == held.gpu_rate.over(1800)


async def break_ledger(desk: Desk) -> None:
    """Let every commit from now on fail as on a full disk."""

    async def full(*_: Any) -> None:
        raise LedgerError(Code.UNWRITABLE, "no space left on the device")

    desk.ledger._commit = full  # type: ignore[method-assign,assignment]


async def test_nothing_is_paid_for_that_cannot_be_written_down(desk: Desk) -> None:
    decision = await desk.rent()
    await break_ledger(desk)
    with pytest.raises(LedgerError):
        await desk.journal.carry_out(decision, desk.work)
    assert await desk.writes() == []


@pytest.mark.parametrize("kind", [Pause, Release])
async def test_what_saves_money_goes_on_without_the_ledger(desk: Desk, kind: type[Pause | Release]) -> None:
    held = await desk.rented()
    await break_ledger(desk)
    assert await desk.journal.carry_out(kind(held, WHY), desk.work) is None
    (contract,) = await desk.contracts()
    assert contract["status"] in {"destroyed", "stopped", "exited", "ended"} or kind is Pause
    assert (await desk.writes("DELETE")) if kind is Release else (await desk.writes())[1:]


@pytest.mark.parametrize("kind", [Pause, Release])
async def test_without_ledger_and_market_it_is_said_and_nothing_breaks(desk: Desk, kind: type[Pause | Release]) -> None:
    held = await desk.rented()
    await break_ledger(desk)
    await desk.market.weather("server_error_before", route="*", probability=1.0, seconds=600)
    assert await desk.journal.carry_out(kind(held, WHY), desk.work) is None


async def test_a_ledger_that_fails_between_recorded_and_sent_sends_only_what_saves(desk: Desk) -> None:
    held = await desk.rented()
    advance = desk.ledger.transaction
    calls = 0

    def failing() -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise LedgerError(Code.UNWRITABLE, "no space left on the device")
        return advance()

    desk.ledger.transaction = failing  # type: ignore[method-assign]
    assert await desk.journal.carry_out(Release(held, WHY), desk.work) is None
    assert await desk.writes("DELETE")
    calls = 0
    with pytest.raises(LedgerError):
        await desk.journal.carry_out(Resume(held, WHY), desk.work)


async def test_a_cancelled_send_is_left_in_doubt(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def cancelled(*_: Any) -> str:
        raise asyncio.CancelledError

    monkeypatch.setattr(desk.vast, "rent", cancelled)
    with pytest.raises(asyncio.CancelledError):
        await desk.journal.carry_out(await desk.rent(), desk.work)
    assert [intent.state for intent in await desk.intents()] == [IntentState.IN_DOUBT]


def test_no_lease_is_written_by_a_hold() -> None:
    with pytest.raises(TypeError, match="Hold"):
        outcomes.written(Hold(builders.slot(), WHY), builders.NOW, builders.workload().checkpoint)


async def test_a_queued_resume_stays_paused(desk: Desk) -> None:
    held = await desk.rented()
    paused = msgspec.structs.replace(held, state=LeaseState.PAUSED)
    made = outcomes.written(Resume(paused, WHY), desk.clock.now(), desk.work.checkpoint, is_accepted=False)
    assert (made.lease.state, made.lease.state_since, made.kind) == (
        LeaseState.PAUSED,
        held.state_since,
        "lease.queued",
    )


async def test_a_release_is_metered_by_what_the_market_recorded_since_the_last_look(desk: Desk) -> None:
    """Nobody had listed it since it was rented, and the record shows that it started: its GPU counts from there."""
    held = await desk.rented()
    await desk.advance(1800)
    started = builders.event("started", instance_id=held.instance_id, at=desk.clock.now() - timedelta(minutes=10))
    desk.journal.looks = {held.lease_id: billed_times.Look(held.accrued_until, (started,))}
    await desk.send(Release(held, WHY))
    (spent,) = await (await desk.ledger.reader()).spend_by(SpendKey.LEASE)
    assert spent.running_seconds == pytest.approx(600)


@pytest.mark.parametrize("kind", [Pause, Release])
async def test_what_was_metered_since_a_decision_is_not_charged_again(
    desk: Desk, kind: type[Pause] | type[Release]
) -> None:
    held = await desk.rented()
    running = msgspec.structs.replace(
        held, state=LeaseState.RUNNING, bills=Bills.GPU_AND_DISK, run_since=held.accrued_until
    )
    await desk.advance(1800)
    async with desk.ledger.transaction() as tx:
        tx.update_lease(msgspec.structs.replace(running, accrued_until=desk.clock.now()))
    await desk.send(kind(running, WHY))
    spent = await (await desk.ledger.reader()).spend_by(SpendKey.LEASE)
    assert sum(line.amount.dollars for line in spent) < 0.001


async def test_time_in_which_a_silent_host_billed_nothing_owes_no_rise(desk: Desk) -> None:
    """The rate of a lease is doubted, its host falls silent, and its release is due ten minutes later."""
    held = await desk.rented()
    agreed_until = held.accrued_until - timedelta(seconds=30)
    doubted = msgspec.structs.replace(held, doubted_rate=builders.per_hour("0.40"), agreed_until=agreed_until)
    silent = msgspec.structs.replace(doubted, state=LeaseState.OFFLINE, bills=Bills.NOTHING)
    async with desk.ledger.transaction() as tx:
        tx.update_lease(silent)
    await desk.advance(600)
    await desk.journal.keep_due(Release(silent, WHY))
    released = desk.lease()
    assert released.agreed_until is not None
    assert released.accrued_until - released.agreed_until == timedelta(seconds=30)
