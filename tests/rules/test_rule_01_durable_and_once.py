"""Rule 1: no paying write without a durable intent; rent, rebid and resume are sent at most once per intent.

The witness before the market looks into the ledger file when an order arrives; the world refuses one that is not there
as *sent*, or that arrives twice.
"""

import contextlib
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.domain.record.intent import IntentKind, IntentState
from agent.ledger.ledger_errors import LedgerError
from tests.support.losses import losses, seeds
from tests.support.world import CENT_POLL, Rehearsed, play, work

times = st.sampled_from([1.2, 3.0, None])


@given(seed=seeds, slots=st.integers(1, 3), storms=st.lists(st.tuples(losses, times), min_size=1, max_size=3))
def test_every_order_stands_in_the_ledger_and_arrives_once(
    seed: int, slots: int, storms: list[tuple[dict[str, Any], float | None]]
) -> None:
    async def story(world: Rehearsed) -> None:
        for loss, rivals_bid in storms:
            world.weather(**loss)
            await world.cycle(minutes=6)
            for contract in world.live()[:1]:
                bid = None if rivals_bid is None or contract.bid is None else contract.bid * rivals_bid
                world.rival(contract.slice.machine_id, bid=bid)
            await world.cycle(minutes=6)
        await world.cycle(minutes=12)

        arrived = Counter(order.intent_id for order in world.orders if order.kind.is_paying)
        assert arrived, "nothing was ever ordered; the story tells nothing"
        assert set(arrived.values()) == {1}
        unsent = {IntentState.RECORDED, IntentState.DENIED}
        for intent in await world.intents(IntentKind.RENT, IntentKind.REBID, IntentKind.RESUME):
            assert intent.intent_id not in arrived or intent.state not in unsent
            assert intent.intent_id not in arrived or intent.sent_at is not None

    play(story, seed=seed, workloads=(work(slots=slots),), poll=CENT_POLL)


@given(seed=seeds, table=st.sampled_from(["intents", "leases"]), minutes=st.sampled_from([1, 5, 30]))
def test_a_ledger_that_takes_no_rows_pays_for_nothing(seed: int, table: str, minutes: int) -> None:
    """Where no intent can be written no order leaves; where no answer can be, one has left and stays in doubt."""

    async def story(world: Rehearsed) -> None:
        world.refuse_rows(table)
        until = world.clock.monotonic() + 60 * minutes
        while world.clock.monotonic() < until:
            with contextlib.suppress(LedgerError):
                await world.app.cycle()
            world.clock.advance(world.config.poll.total_seconds())
        assert len(world.orders) == (1 if table == "leases" else 0)
        world.accept_rows()
        await world.until_running()
        await world.cycle(minutes=15)
        # A host that was slow to load all the while is given up for another once that can be written.
        assert len(world.live()) == 1
        assert len(world.contracts()) == len([order for order in world.orders if order.kind is IntentKind.RENT])
        assert not world.open_intents()

    play(story, seed=seed)
