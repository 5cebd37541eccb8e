"""The executor: what stops paying first, a few at a time, never half because it was cancelled."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agent.act import executor as subject
from agent.act.executor import Executor
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold, Pause, Release, Rent
from agent.domain.work.workload import Workload
from agent.ledger.ledger_errors import Code, LedgerError
from tests.act.conftest import WHY, Desk
from tests.support import builders


async def several(desk: Desk, number: int) -> list[Rent]:
    """Return decisions to rent on as many hosts."""
    first = await desk.rent()
    rows = {row["machine_id"]: row for row in await desk.market.offers("bid") if row["min_bid"]}
    made = []
    for index, row in enumerate(list(rows.values())[:number]):
        bid = builders.per_hour(str(round(row["min_bid"] * 1.5, 4)))
        offer = replace_offer(first, row, bid)
        made.append(replace(first, slot=Slot("train", index), offer=offer, bid=bid, rate=bid))
    return made


def replace_offer(rent: Rent, row: Any, bid: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(
        rent.offer, offer_id=str(row["id"]), host_id=str(row["machine_id"]), floor=bid, gpus=row["num_gpus"]
    )


async def run(executor: Executor, desk: Desk, *decisions: Decision) -> list[tuple[IntentKind, IntentState]]:
    done = await executor.run(decisions, {"train": desk.work})
    return [(intent.kind, intent.state) for intent in done]


async def test_every_decision_is_carried_out_and_holds_are_nothing(desk: Desk, executor: Executor) -> None:
    rents = await several(desk, 3)
    done = await run(executor, desk, Hold(builders.slot(), WHY), *rents)
    assert done == [(IntentKind.RENT, IntentState.CONFIRMED)] * 3
    assert await run(executor, desk, Hold(builders.slot(), WHY)) == []


async def test_what_stops_paying_goes_first_whatever_the_order(desk: Desk, executor: Executor) -> None:
    first, second, third = await several(desk, 3)
    await run(executor, desk, first, second)
    one, two = await desk.prove_all()
    done = await run(executor, desk, third, Release(one, WHY), Pause(two, WHY))
    assert [kind for kind, _ in done] == [IntentKind.RELEASE, IntentKind.PAUSE, IntentKind.RENT]
    calls = [call for call in (await desk.market.truth())["calls"] if call["method"] != "GET"][-3:]
    assert "/asks/" in calls[-1]["path"]


async def test_no_more_than_a_few_writes_are_in_flight(
    desk: Desk, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_flight = most = 0
    carry_out = desk.journal.carry_out

    async def counting(*said: Any) -> Any:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        try:
            return await carry_out(*said)
        finally:
            in_flight -= 1

    monkeypatch.setattr(desk.journal, "carry_out", counting)
    await run(executor, desk, *await several(desk, 7))
    assert most == subject.MOST_AT_ONCE


async def test_the_first_error_is_raised_after_all_have_ended(
    desk: Desk, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out = desk.journal.carry_out

    async def failing(decision: Rent, work: Any) -> Any:
        if decision.slot.index == 0:
            raise LedgerError(Code.UNWRITABLE, "no space left on the device")
        return await carry_out(decision, work)

    monkeypatch.setattr(desk.journal, "carry_out", failing)
    with pytest.raises(LedgerError):
        await run(executor, desk, *await several(desk, 3))
    assert [intent.state for intent in await desk.intents()] == [IntentState.CONFIRMED] * 2


async def test_a_cancellation_waits_for_what_was_begun(
    desk: Desk, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()
    rent = desk.vast.rent

    async def slow(*said: Any) -> str:
        reached.set()
        await go_on.wait()
        return await rent(*said)

    decision = await desk.rent()
    monkeypatch.setattr(desk.vast, "rent", slow)
    task = asyncio.ensure_future(run(executor, desk, decision))
    await reached.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [intent.state for intent in await desk.intents()] == [IntentState.CONFIRMED]
    assert desk.lease().instance_id


async def test_a_denied_rent_asks_no_bucket(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill waits for the rents that have begun, and each bucket may take two minutes to answer."""
    asked: list[Decision] = []

    async def answers_late(_intent: Intent, decision: Decision, _work: Workload | None) -> bool:
        asked.append(decision)
        desk.denial.append("the kill of fleet:all")
        return False

    monkeypatch.setattr(desk.journal.guarded, "is_needless", answers_late)
    rents = [replace(await desk.rent(), slot=builders.slot("train", number)) for number in range(1, 10)]
    done = await Executor(desk.journal).run(rents, {"train": desk.work})
    assert {intent.state for intent in done} == {IntentState.DENIED}
    assert len(done) == len(rents) > len(asked)
    assert await desk.writes() == []


async def test_a_denial_that_is_lifted_meanwhile_denies_the_rent_that_was_not_looked_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["the ledger cannot be written"])
    monkeypatch.setattr(desk.journal, "_denial", lambda _: next(answers, ""))
    (intent,) = await Executor(desk.journal).run([await desk.rent()], {"train": desk.work})
    assert (intent.state, intent.outcome) == (IntentState.DENIED, "the ledger cannot be written")
    assert await desk.writes() == []
