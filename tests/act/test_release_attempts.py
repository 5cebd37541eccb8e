"""Ending a lease: a release that fails becomes a pause and stays due, and refused attempts keep a pace."""

import dataclasses

import pytest
from msgspec.structs import replace

from agent.act.executor import Executor
from agent.decide.moves import break_before_make
from agent.decide.reconcile.billed_times import Look
from agent.domain.market.market_rules import MarketRules
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.decision import Pause, Reason, Release
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.ledger.ledger_errors import Code, LedgerError
from tests.act.conftest import WHY, Desk

YEAR = 31_536_000


async def end(desk: Desk, executor: Executor) -> list[tuple[IntentKind, IntentState]]:
    done = await executor.run([Release(desk.lease(), WHY)], {"train": desk.work})
    return [(intent.kind, intent.state) for intent in done]


async def test_a_throttled_release_stops_the_instance_and_stays_due(desk: Desk, executor: Executor) -> None:
    await desk.rented()
    await desk.market.weather("throttle_retry_after", route="DELETE /instances", retry_after=YEAR)
    assert await end(desk, executor) == [
        (IntentKind.RELEASE, IntentState.REJECTED),
        (IntentKind.PAUSE, IntentState.CONFIRMED),
    ]
    held = desk.lease()
    assert (held.state, held.bills, held.paused_by_us) == (LeaseState.RELEASING, Bills.DISK, True)
    assert [contract["status"] for contract in await desk.contracts()] == ["stopped"]


CANNOT_PAUSE = MarketRules(can_pause=False)


async def test_where_nothing_can_be_paused_a_pause_is_a_release(desk: Desk, executor: Executor) -> None:
    held = await desk.rented()
    executor.see({held.lease_id: Look(desk.clock.now(), rules=CANNOT_PAUSE)})
    (intent,) = await executor.run([Pause(held, WHY)], {"train": desk.work})
    assert (intent.kind, intent.state) == (IntentKind.RELEASE, IntentState.CONFIRMED)
    assert "vast cannot pause, so it is released" in desk.lease().end_reason + (intent.reason or "")


async def test_where_nothing_can_be_paused_the_only_copy_stays(desk: Desk, executor: Executor) -> None:
    held = replace(await desk.rented(), has_run=True)
    executor.see({held.lease_id: Look(desk.clock.now(), rules=CANNOT_PAUSE)})
    work = dataclasses.replace(desk.work, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    assert await executor.run([Pause(held, WHY)], {"train": work}) == []
    assert [contract["ended"] for contract in await desk.contracts()] == [None]


@pytest.mark.parametrize("code", ["over_budget", "over_rate", "killed"])
async def test_a_kill_or_a_hard_cap_ends_the_only_copy_where_nothing_can_be_paused(
    desk: Desk, executor: Executor, code: str
) -> None:
    held = replace(await desk.rented(), has_run=True)
    executor.see({held.lease_id: Look(desk.clock.now(), rules=CANNOT_PAUSE)})
    work = dataclasses.replace(desk.work, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    (intent,) = await executor.run([Pause(held, dataclasses.replace(WHY, code=code))], {"train": work})
    assert (intent.kind, intent.state) == (IntentKind.RELEASE, IntentState.CONFIRMED)


async def test_a_release_that_is_refused_is_not_followed_by_a_pause_that_cannot_be(
    desk: Desk, executor: Executor
) -> None:
    held = await desk.rented()
    executor.see({held.lease_id: Look(desk.clock.now(), rules=CANNOT_PAUSE)})
    await desk.market.weather("throttle_retry_after", route="DELETE /instances", retry_after=YEAR)
    assert await end(desk, executor) == [(IntentKind.RELEASE, IntentState.REJECTED)]


async def test_no_intent_is_written_while_the_market_has_closed_the_call(desk: Desk, executor: Executor) -> None:
    await desk.rented()
    await desk.market.weather("throttle_retry_after", route="DELETE /instances", retry_after=YEAR)
    await end(desk, executor)
    kept = len(await desk.intents())
    executor.hasten()
    assert await end(desk, executor) == []
    assert len(await desk.intents()) == kept
    await desk.advance(60.0)
    assert await end(desk, executor) == [(IntentKind.RELEASE, IntentState.REJECTED)], "a year is a minute at most"
    await desk.market.control("DELETE", "/weather")
    await desk.advance(300.0)
    assert await end(desk, executor) == [(IntentKind.RELEASE, IntentState.CONFIRMED)]


async def test_where_both_are_refused_each_is_tried_about_once_a_minute(desk: Desk, executor: Executor) -> None:
    await desk.rented()
    for route in ("DELETE /instances", "PUT /instances"):
        await desk.market.weather("throttle_retry_after", route=route, retry_after=YEAR)
    before = len(await desk.intents())
    for _ in range(65 * 4):
        await end(desk, executor)
        await desk.advance(15.0)
    tried = len(await desk.intents()) - before
    assert 2 * 60 <= tried <= 2 * 66, "65 minutes at the pace of a poll"


async def test_a_release_without_an_answer_becomes_a_pause_at_the_second_time(desk: Desk, executor: Executor) -> None:
    await desk.rented()
    await desk.market.weather("server_error_before", route="DELETE /instances")
    assert await end(desk, executor) == [(IntentKind.RELEASE, IntentState.IN_DOUBT)]
    await desk.advance(15.0)
    assert await end(desk, executor) == [
        (IntentKind.RELEASE, IntentState.IN_DOUBT),
        (IntentKind.PAUSE, IntentState.CONFIRMED),
    ]


async def test_a_release_that_is_confirmed_and_due_again_becomes_a_pause_at_the_third_time(
    desk: Desk, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def accept(_instance_id: str, *, is_gone: bool, is_gentle: bool) -> None:
        assert not is_gone
        assert is_gentle

    async def listed_again() -> None:
        """Record the next listing, which shows that it bills."""
        async with desk.ledger.transaction() as tx:
            tx.update_lease(replace(desk.lease(), bills=Bills.GPU_AND_DISK))

    await desk.rented()
    monkeypatch.setattr(desk.vast, "release", accept)
    for _ in range(2):
        assert await end(desk, executor) == [(IntentKind.RELEASE, IntentState.CONFIRMED)]
        await listed_again()
        await desk.advance(15.0)
    assert await end(desk, executor) == [(IntentKind.PAUSE, IntentState.CONFIRMED)]
    held = desk.lease()
    assert (held.state, held.bills, held.paused_by_us) == (LeaseState.RELEASING, Bills.DISK, True)
    assert [contract["status"] for contract in await desk.contracts()] == ["stopped"]


async def test_a_lease_that_is_being_released_may_still_be_paused(desk: Desk, executor: Executor) -> None:
    await desk.rented()
    await desk.market.weather("server_error_before", route="DELETE /instances")
    await end(desk, executor)
    done = await executor.run([Pause(desk.lease(), WHY)], {"train": desk.work})
    assert [(intent.kind, intent.state) for intent in done] == [(IntentKind.PAUSE, IntentState.CONFIRMED)]
    assert desk.lease().state is LeaseState.RELEASING


class Full:
    """A transaction that a full disk refuses."""

    async def __aenter__(self) -> None:
        raise LedgerError(Code.UNWRITABLE, "full")

    async def __aexit__(self, *_: object) -> None: ...


async def test_an_unwritable_ledger_stops_too_what_it_cannot_release(desk: Desk, executor: Executor) -> None:
    held = await desk.rented()
    await desk.market.weather("throttle_retry_after", route="DELETE /instances", retry_after=YEAR)
    desk.ledger.transaction = Full  # type: ignore[method-assign,assignment]
    assert await executor.run([Release(held, WHY)], {"train": desk.work}) == []
    assert [contract["status"] for contract in await desk.contracts()] == ["stopped"]


async def test_what_works_is_not_released_to_make_room_for_a_rent_that_cannot_follow(
    desk: Desk, executor: Executor
) -> None:
    """The release goes out once it can be written down; the rent is decided after that."""
    held = await desk.rented()
    moved = Release(held, Reason(break_before_make.MOVED, "no room for two at once"))
    transaction = desk.ledger.transaction
    desk.ledger.transaction = Full  # type: ignore[method-assign,assignment]
    with pytest.raises(LedgerError):
        await executor.run([moved], {"train": desk.work})
    assert await desk.writes("DELETE") == []
    desk.ledger.transaction = transaction  # type: ignore[method-assign]
    assert [each.state for each in await executor.run([moved], {"train": desk.work})] == [IntentState.CONFIRMED]
    assert len(await desk.writes("DELETE")) == 1
