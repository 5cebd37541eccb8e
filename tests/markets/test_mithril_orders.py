"""Orders to Mithril: what leaves, what its answers prove, that each leaves once, and how a lost bid is found."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.markets import labels, market_errors
from agent.markets.mithril.market import MithrilMarket
from tests.markets import spot_bids
from tests.markets.scene import LABEL
from tests.markets.spot_bids import BID, NAME, bid, mithril_saying, page, refused
from tests.markets.wire import Says, Seen

Order = Callable[[MithrilMarket], Awaitable[Any]]
ORDERS: dict[str, Order] = {
    "rent": lambda mithril: mithril.rent(spot_bids.OFFERED, spot_bids.ORDER, LABEL),
    "rebid": lambda mithril: mithril.rebid(BID, money.per_hour("2.60")),
    "resume": lambda mithril: mithril.resume(BID),
    "pause": lambda mithril: mithril.pause(BID),
    "release": lambda mithril: mithril.release(BID),
}
LOW = [{"loc": ["body", "limit_price"], "msg": "below minimum price", "type": "value_error", "input": "s3cret"}]
OURS = [{"loc": ["body", "instance_quantity"], "msg": "too many", "type": "value_error"}]


async def test_an_order_says_everything_it_means(clock: SteppedClock) -> None:
    async with mithril_saying(spot_bids.project, clock) as (mithril, wire):
        assert await mithril.rent(spot_bids.OFFERED, spot_bids.ORDER, LABEL) == BID
    (sent,) = wire.seen
    assert (sent.method, sent.path) == ("POST", "/v2/spot/bids")
    body = sent.json
    script = body["launch_specification"].pop("startup_script")
    assert body == {
        "project": "proj_1",
        "region": "us-central3-a",
        "instance_type": "it_a100x1",
        "limit_price": "$2.50",
        "instance_quantity": 1,
        "name": NAME,
        "launch_specification": {"volumes": [], "ssh_keys": []},
    }
    assert script.startswith("#!/bin/bash\n# gpubid disk_gb=40.000 ports=\n")
    assert len(NAME) <= labels.MAX_SHORT_LABEL


async def test_the_other_orders_are_one_request_each(clock: SteppedClock) -> None:
    async with mithril_saying(spot_bids.project, clock) as (mithril, wire):
        await mithril.rebid(BID, money.per_hour("2.605"))
        assert await mithril.resume(BID) is False, "an auction starts it, not this call"
        await mithril.pause(BID)
        await mithril.release(BID)
    path = f"/v2/spot/bids/{BID}"
    assert [(seen.method, seen.path) for seen in wire.seen] == [("PATCH", path)] * 3 + [("DELETE", path)]
    assert [seen.json for seen in wire.seen[:3]] == [{"limit_price": "$2.60"}, {"paused": False}, {"paused": True}]


@pytest.mark.parametrize(
    ("terms", "label"),
    [
        (replace(spot_bids.ORDER, tenure=Tenure.ON_DEMAND, bid=None), LABEL),
        (replace(spot_bids.ORDER, bid=None), LABEL),
        (replace(spot_bids.ORDER, bid=money.UsdPerHour(9_999)), LABEL),
        (replace(spot_bids.ORDER, image=""), LABEL),
        (replace(spot_bids.ORDER, template="t"), LABEL),
        (replace(spot_bids.ORDER, network_volume="v"), LABEL),
        (replace(spot_bids.ORDER, command="python 'unclosed"), LABEL),
        (replace(spot_bids.ORDER, environment=(("A B", "1"),)), LABEL),
        (replace(spot_bids.ORDER, environment=(("DOCKER_HOST", "1"),)), LABEL),
        (replace(spot_bids.ORDER, environment=(("BIG", "x" * 9_000),)), LABEL),
        (spot_bids.ORDER, "a label of somebody"),
    ],
)
async def test_what_cannot_be_carried_out_as_meant_never_leaves(clock: SteppedClock, terms: Any, label: str) -> None:
    async with mithril_saying(spot_bids.project, clock) as (mithril, wire):
        with pytest.raises(market_errors.Rejected):
            await mithril.rent(spot_bids.OFFERED, terms, label)
    assert wire.seen == []


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize(
    "answer",
    [
        Says(b"<html>busy</html>", 403),
        Says(b"<html>gone</html>", 404),
        Says(b"", 404),
        refused(404, "Not Found"),
        Says(b"<html>pay</html>", 402),
        Says(b"", 409),
        Says({"detail": ""}, 409),
        refused(500, "Internal Server Error"),
        refused(501, "Spot bids are not yet supported."),
        Says(b"", 503),
        Says({"message": "a proxy"}, 400),
        Says(b"", 307),
        Says(drop=True),
    ],
    ids=["403", "404 page", "404", "no route", "402", "409", "empty", "500", "501", "503", "400", "307", "drop"],
)
async def test_what_proves_nothing_is_doubt_and_leaves_once(clock: SteppedClock, name: str, answer: Says) -> None:
    async with mithril_saying(answer, clock) as (mithril, wire):
        with pytest.raises(market_errors.Ambiguous):
            await ORDERS[name](mithril)
    assert len([seen for seen in wire.seen if seen.method != "GET"]) == 1


@pytest.mark.parametrize("answer", [refused(400, "Name already used"), refused(409, "A bid with this name exists")])
async def test_a_name_that_is_used_may_be_our_own_bid(clock: SteppedClock, answer: Says) -> None:
    """Something on the way may have sent the order twice."""
    async with mithril_saying(answer, clock) as (mithril, _):
        with pytest.raises(market_errors.Ambiguous):
            await ORDERS["rent"](mithril)


@pytest.mark.parametrize("name", ["rent", "rebid", "resume", "pause"])
@pytest.mark.parametrize(
    "answer", [Says(b"", 200), Says(b'{"fid": ', 200), Says({"fid": None}), Says(bid(fid="bid_other", name="theirs"))]
)
async def test_a_confirmation_of_another_bid_or_of_none_is_doubt(clock: SteppedClock, name: str, answer: Says) -> None:
    async with mithril_saying(answer, clock) as (mithril, _):
        with pytest.raises(market_errors.Ambiguous):
            await ORDERS[name](mithril)


async def test_a_limit_that_the_market_did_not_take_over_is_doubt(clock: SteppedClock) -> None:
    async with mithril_saying(Says(bid(limit_price="$2.50")), clock) as (mithril, _):
        with pytest.raises(market_errors.Ambiguous, match=r"\$2\.50 instead of \$2\.60"):
            await ORDERS["rebid"](mithril)


@pytest.mark.parametrize(
    ("answer", "name", "error", "reason"),
    [
        (refused(422, LOW), "rent", market_errors.Rejected, "bid_too_low"),
        (refused(422, LOW), "rebid", market_errors.Rejected, "bid_too_low"),
        (refused(400, "Limit price below minimum"), "rent", market_errors.Rejected, "bid_too_low"),
        (refused(422, OURS), "rent", market_errors.Rejected, "invalid_args"),
        (refused(400, "Quota exceeded"), "rent", market_errors.Rejected, "refused"),
        (refused(402, "Payment required"), "rent", market_errors.OutOfFunds, "out_of_funds"),
        (refused(403, "Quota exceeded"), "rent", market_errors.Rejected, "forbidden"),
        (refused(404, "Region not found"), "rent", market_errors.Rejected, "not_found"),
        (refused(409, "Bid is terminated"), "rebid", market_errors.Rejected, "wrong_state"),
    ],
)
async def test_a_refusal_in_the_markets_own_shape_is_proof(
    clock: SteppedClock, answer: Says, name: str, error: type[market_errors.Rejected], reason: str
) -> None:
    async with mithril_saying(answer, clock) as (mithril, wire):
        with pytest.raises(error) as caught:
            await ORDERS[name](mithril)
    assert caught.value.reason == reason
    assert "s3cret" not in str(caught.value), "the rejected input is not repeated: it may be a secret"
    assert len([seen for seen in wire.seen if seen.method != "GET"]) == 1


@pytest.mark.parametrize("name", ORDERS)
async def test_a_refused_key_and_too_many_calls_are_told_apart(clock: SteppedClock, name: str) -> None:
    async with mithril_saying(refused(401, "Invalid API key"), clock) as (mithril, _):
        with pytest.raises(market_errors.Unauthorized):
            await ORDERS[name](mithril)
    throttled = refused(429, "Slow down", **{"Retry-After": "40"})
    async with mithril_saying(throttled, clock) as (mithril, wire):
        began = clock.now()
        with pytest.raises(market_errors.Throttled) as caught:
            await ORDERS[name](mithril)
        assert caught.value.until is not None
        assert (caught.value.until - began).total_seconds() == 40
        if name in {"pause", "release"}:
            assert len(wire.seen) == 1


async def test_an_ended_bid_is_released_and_a_paused_one_paused(clock: SteppedClock) -> None:
    def answers(status: str) -> Callable[[Seen], Says]:
        return lambda seen: Says(bid(status=status)) if seen.method == "GET" else refused(409, f"Bid is {status}")

    for status, is_released, is_paused in (
        ("Terminated", True, False),
        ("Paused", False, True),
        ("Allocated", False, False),
    ):
        async with mithril_saying(answers(status), clock) as (mithril, _):
            for order, is_done in ((mithril.release, is_released), (mithril.pause, is_paused)):
                if is_done:
                    await order(BID)
                    continue
                is_gone = status == "Terminated"
                with pytest.raises(market_errors.NotFound if is_gone else market_errors.Rejected):
                    await order(BID)
    async with mithril_saying(refused(404, "Bid not found"), clock) as (mithril, _):
        await mithril.release(BID)
        with pytest.raises(market_errors.NotFound):
            await mithril.pause(BID)


async def test_a_bid_whose_answer_was_lost_is_found_by_its_name(clock: SteppedClock) -> None:
    """The listing may show it late; nothing is ever ordered again."""
    theirs = bid(fid="bid_other", name=f"{NAME}-2")

    def answers(seen: Seen) -> Says:
        if seen.method == "POST":
            return Says(drop=True)
        if seen.path == "/v2/spot/bids":
            waiting = bid(status="Open", instances=[])
            return page(theirs, waiting) if "name" in seen.query else page(theirs)
        return page() if seen.path == "/v2/instances" else spot_bids.project(seen)

    async with mithril_saying(answers, clock) as (mithril, wire):
        with pytest.raises(market_errors.Ambiguous):
            await mithril.rent(spot_bids.OFFERED, spot_bids.ORDER, LABEL)
        assert [row.instance_id for row in await mithril.instances()] == ["bid_other", BID]
        clock.advance(3600.0)
        assert [row.instance_id for row in await mithril.instances()] == ["bid_other"]
    assert sum(seen.method == "POST" for seen in wire.seen) == 1
    assert [seen.query["name"] for seen in wire.seen if "name" in seen.query] == [NAME]
