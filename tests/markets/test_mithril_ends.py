"""The end of a bid: its word alone ends no bid whose machine may hold GPUs. In a listing, and in a look by id."""

from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain.market.instance import InstanceState
from agent.markets import market_errors
from tests.markets.spot_bids import BID, bid, listing, machine, mithril_saying
from tests.markets.wire import Answers, Says, Seen

UNKNOWN = InstanceState.UNKNOWN


def over(machines: list[Any], ended_at: str | None = None) -> Answers:
    """Answer as a project whose only bid is called over, in a listing and by its id."""
    shown = bid(status="Terminated", deactivated_at=ended_at)
    listed = listing(shown, machines=machines)

    def answers(seen: Seen) -> Says:
        is_look = seen.method == "GET" and seen.path == f"/v2/spot/bids/{BID}"
        return Says(shown) if is_look else listed(seen)

    return answers


@pytest.mark.parametrize("status", ["STATUS_RUNNING", "STATUS_STARTING", "STATUS_NEW", "unheard"])
async def test_a_machine_that_may_hold_gpus_contradicts_an_end_without_its_time(
    clock: SteppedClock, status: str
) -> None:
    """`Terminated`, told for an hour of each new bid, rented ten paid machines for two slots."""
    async with mithril_saying(over([machine(status=status)]), clock) as (mithril, _):
        rows = [*await mithril.instances(), await mithril.instance(BID)]
    assert [(row.instance_id, row.state, row.bills_gpu) for row in rows] == [(BID, UNKNOWN, True)] * 2


@pytest.mark.parametrize(
    ("ended_at", "machines"),
    [("2026-11-05T21:00:00Z", [machine()]), (None, [machine(status="STATUS_STOPPING")]), (None, [])],
    ids=["it has the time of its end", "its machine stops", "it has no machine"],
)
async def test_a_bid_has_ended_with_its_time_or_without_a_machine(
    clock: SteppedClock, ended_at: str | None, machines: list[Any]
) -> None:
    async with mithril_saying(over(machines, ended_at), clock) as (mithril, _):
        assert await mithril.instances() == []
        with pytest.raises(market_errors.NotFound):
            await mithril.instance(BID)


@pytest.mark.parametrize("ended_at", ["2026-11-05T21:00:00Z", None], ids=["with the time of its end", "without"])
@pytest.mark.parametrize("word", ["Open", "Paused", "Allocated", "junk"])
async def test_a_bid_that_we_ended_is_over_whatever_its_word_once_it_has_the_time_of_its_end(
    clock: SteppedClock, word: str, ended_at: str | None
) -> None:
    """A bid called open, from before its end on, was released again each minute for an hour."""
    listed = listing(bid(status=word, deactivated_at=ended_at), machines=[])

    def answers(seen: Seen) -> Says:
        return Says(b"", 204) if seen.method == "DELETE" else listed(seen)

    async with mithril_saying(answers, clock) as (mithril, _):
        before = await mithril.instances()
        await mithril.release(BID)
        assert [row.instance_id for row in await mithril.instances()] == ([] if ended_at else [BID])
    assert len(before) == (0 if word == "junk" and ended_at else 1)
