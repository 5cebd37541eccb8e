"""Rule 13's exception: a daemon that cannot show that it leads sends nothing, releases included.

With a ledger on a server, "it cannot be written" may mean that another daemon leads and wants the lease. That daemon
ends what must end. The server is real; the lead is lost as in life, and the seconds of the lead are handed in.
"""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.domain.record.intent import IntentKind, IntentState
from agent.ledger.ledger_errors import Code, LedgerError
from tests.support import engines, postgres, spending
from tests.support.losses import seeds
from tests.support.world import Rehearsed, play, work

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")

from agent.ledger.server import leader_row, leadership, session  # noqa: E402 - needs the driver


@pytest.fixture(autouse=True)
def _served(database: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    del engine
    monkeypatch.setattr(engines, "_server", database)
    monkeypatch.setattr(leadership, "BEAT_SECONDS", 3600.0)


def lead(world: Rehearsed) -> leadership.Leadership:
    found: leadership.Leadership | None = world.app.ledger.place.lead  # type: ignore[attr-defined]
    assert found is not None
    return found


def lose(world: Rehearsed, how: str) -> None:
    """Let the daemon lose the lead: its machine slept, its session ended, or another daemon has begun an epoch."""
    mine = lead(world)
    if how == "asleep":
        now = mine._boottime() + leader_row.SHOWN_SECONDS
        mine._boottime = lambda: now
        return
    with psycopg.connect(mine._address.url, autocommit=True) as raw:
        raw.execute(f"SET search_path TO {mine._address.schema}")
        for each in (session.LEADER, session.WRITER):
            found = session.holder(raw, mine._address.schema, each)
            assert found is not None
            session.end(raw, found.process)
        if how == "deposed":
            leader_row.begin(raw)
    mine.beat()


@settings(max_examples=6)
@given(seed=seeds, how=st.sampled_from(["asleep", "broken", "deposed"]), is_killed=st.booleans())
def test_nothing_is_sent(seed: int, how: str, *, is_killed: bool) -> None:
    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await world.until_running()
        sent = len(world.orders)
        lose(world, how)
        for _ in range(3):
            if is_killed:
                # A daemon that only slept may still write the order down.
                with contextlib.suppress(LedgerError):
                    await spending.kill(world.app)
            else:
                with pytest.raises(LedgerError) as refused:
                    await world.app.cycle()
                assert refused.value.code in {Code.UNLED, Code.DEPOSED}
            world.clock.advance(60)
        assert len(world.orders) == sent, "it sent something"

    play(story, seed=seed)


def test_a_person_is_not_told_that_an_order_was_sent() -> None:
    """It said that two orders were sent to the market, and both instances went on billing."""

    async def story(world: Rehearsed) -> None:
        world.is_checked = False
        await world.until_running()
        sent = len(world.orders)
        lose(world, "deposed")
        with pytest.raises(LedgerError) as refused:
            await spending.kill(world.app)
        assert len(world.orders) == sent
        assert refused.value.code is Code.DEPOSED
        assert "were sent" not in refused.value.sentence
        assert "give it again" in refused.value.sentence

    play(story)


def test_a_paying_request_is_withheld_when_its_record_is_old_and_nothing_blocks_its_slot() -> None:
    """The machine slept between "sent" and the first byte."""

    async def story(world: Rehearsed) -> None:
        mine, awake = lead(world), lead(world)._boottime
        began = awake()
        asked = iter([began])
        permit = mine.permit

        def slept(*, is_paying: bool) -> object:
            mine._boottime = lambda: next(asked, began + leadership.SENT_SECONDS)
            return permit(is_paying=is_paying)

        mine.permit = slept  # type: ignore[method-assign,assignment]
        mine._beaten_at = began
        await world.cycle()
        assert not world.orders
        (intent,) = await world.intents(IntentKind.RENT)
        assert (intent.state, intent.outcome) == (IntentState.REJECTED, "withheld")
        mine.permit, mine._boottime = permit, awake  # type: ignore[method-assign]
        await world.until_running()

    play(story, seed=1, workloads=(work(slots=1),))


def test_orders_that_wait_for_their_turn_at_the_market_are_recorded_again_and_leave() -> None:
    """Vast.ai takes a rent every 4.5 s. The third of a batch was withheld, and its healthy offer got a cooldown."""

    async def story(world: Rehearsed) -> None:
        mine = lead(world)
        mine._boottime = world.clock.monotonic
        mine.lost = lambda: None  # type: ignore[method-assign]
        await world.cycle()
        intents = await world.intents(IntentKind.RENT)
        assert [intent.state for intent in intents] == [IntentState.CONFIRMED] * 4
        sent = sorted(intent.sent_at for intent in intents if intent.sent_at is not None)
        assert (sent[-1] - sent[0]).total_seconds() > leadership.SENT_SECONDS
        assert len(world.orders) == len(intents)

    play(story, seed=1, workloads=(work(slots=4),))
