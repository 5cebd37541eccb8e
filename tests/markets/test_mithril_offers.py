"""Pools of Mithril as offers: the price to win, the price paid, cards under their usual names, and what is no offer."""

import json
import os
import pathlib
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.mithril import catalogue, names, prices
from tests.markets import spot_bids
from tests.markets.scene import asked
from tests.markets.spot_bids import bid
from tests.markets.wire import Says, Seen

_FOLDER = os.environ.get("GPUBID_RECORDED", "")
_CENTS = {
    "spot": "spot_price_cents",
    "least": "minimum_price_cents",
    "lowest": "lowest_allocated_bid_cents",
    "dynamic": "dynamic_win_price_cents",
    "free": "available_capacity",
}


def shown(**cents: Any) -> prices.Prices:
    return prices.prices(json.dumps({_CENTS[name]: value for name, value in cents.items()}).encode())


@pytest.mark.parametrize(
    ("cents", "to_win"),
    [
        ({"spot": 1300, "least": 1, "lowest": 1600, "dynamic": 1650, "free": 0}, "16.50"),
        ({"spot": 1300, "least": 1, "lowest": 1600, "free": 0}, "16.01"),
        ({"spot": 1300, "least": 1, "lowest": 1600, "free": 5}, "16.01"),
        ({"spot": 100, "least": 1, "free": 3}, "1.00"),
        ({"spot": 1, "least": 50, "free": 1}, "0.50"),
        ({"least": 50, "free": 1}, "0.50"),
        ({"spot": 3, "least": 1, "free": 0}, None),
        ({"spot": 3, "least": 1}, None),
        ({"spot": 3, "least": 1, "free": 0, "dynamic": float("nan")}, None),
        ({"spot": 3, "least": 1, "free": 0, "dynamic": "junk", "lowest": -5}, None),
        ({"spot": 3, "least": 700, "free": 0, "dynamic": 600}, "7.00"),
        ({"free": 4}, None),
    ],
)
def test_the_price_to_win_is_not_the_spot_price(cents: dict[str, Any], to_win: str | None) -> None:
    assert shown(**cents).to_win() == (None if to_win is None else money.per_hour(to_win))


@pytest.mark.parametrize(
    ("cents", "to_win"),
    [
        ({"spot": 1300, "least": 1, "lowest": 1600, "free": 0}, None),
        ({"spot": 1300, "least": 1, "lowest": 1600, "free": 1}, "13.00"),
        ({"least": 1, "lowest": 1600, "free": 1}, "0.01"),
        ({"spot": 1300, "least": 1, "lowest": 1599, "free": 0}, "16.00"),
        ({"spot": 1300, "least": 1, "lowest": 1600, "dynamic": 1700, "free": 0}, "17.00"),
    ],
)
def test_our_own_lowest_bid_says_nothing_of_the_price_to_win(cents: dict[str, Any], to_win: str | None) -> None:
    own = {money.per_hour("16")}
    assert shown(**cents).to_win(own) == (None if to_win is None else money.per_hour(to_win))


@pytest.mark.skipif(not _FOLDER, reason="GPUBID_RECORDED does not name the folder of recordings")
def test_of_three_recorded_pools_two_have_no_known_price() -> None:
    recorded = json.loads((pathlib.Path(_FOLDER) / "mithril" / "pricing_current_recorded.json").read_text())
    bodies = [prices.prices(json.dumps(one["body"]).encode()) for one in recorded["pricing_current"]]
    assert [one.to_win() for one in bodies] == [money.per_hour(1), None, None]
    assert [one.paid for one in bodies] == [money.per_hour(1), money.per_hour(8), money.per_hour("0.03")]


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("$15.60", "15.60"),
        ("15.6", "15.6"),
        ("$1,234.50", "1234.5"),
        ("$0.01", "0.01"),
        ("$-1", None),
        ("NaN", None),
        ("$1e5", None),
        ("free", None),
        ("", None),
        ("$99999999", None),
    ],
)
def test_a_price_in_text_is_exact_or_unread(text: str, rate: str | None) -> None:
    assert prices.of_text(text) == (None if rate is None else money.per_hour(rate))


def test_a_limit_is_sent_in_whole_cents_and_never_dearer() -> None:
    assert prices.text(money.per_hour("25.6099")) == "$25.60"
    assert prices.text(money.per_hour("0.05")) == "$0.05"


@pytest.mark.parametrize(
    ("gpu_type", "socket", "name", "model"),
    [
        ("A100", "SXM4", "a100-80gb.sxm.1x", "A100 SXM4"),
        ("A100", "", "a100-80gb.sxm.1x", "A100 SXM4"),
        ("A100", "PCIe", "a100-80gb.pcie.1x", "A100 PCIE"),
        ("H100", "SXM5", "h100-80gb.sxm.8x", "H100 SXM"),
        ("NVIDIA H100-80GB", "NVL", "", "H100 NVL"),
        ("H200", "SXM5", "h200.8x", "H200"),
        ("", "", "neb-b200.sxm.1x", "B200"),
        ("RTX 4090", "", "rtx4090.1x", "RTX 4090"),
    ],
)
def test_a_card_has_the_name_that_other_markets_give_it(gpu_type: str, socket: str, name: str, model: str) -> None:
    assert names.model(gpu_type, socket, name) == model


async def test_a_pool_is_an_offer_with_the_price_to_win_and_the_price_paid(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(spot_bids.project, clock) as (mithril, wire):
        found = await mithril.offers(asked(gpus=1, gpu_models=("A100 SXM4",)))
        again = await mithril.offers(asked(gpus=1, gpu_models=("A100 SXM4",)))
    assert found == again
    assert [(o.offer_id, o.host_id, o.floor, o.price_paid, o.is_price_unknown) for o in found] == [
        ("it_a100x1@us-central3-a", spot_bids.HOST, money.per_hour(1), money.per_hour(1), False),
        (
            "it_a100x1@eu-central1-b",
            "pool/eu-central1-b/it_a100x1",
            money.per_hour("1.61"),
            money.per_hour("1.2"),
            False,
        ),
    ]
    first = found[0]
    assert (first.gpu, first.gpus, first.vram_mb, first.dlperf, first.ask) == ("A100 SXM4", 1, 80 * 1024, 80.5, None)
    assert (first.region, first.storage_micros_per_gb_month) == ("us-central3-a, US", spot_bids.DISK_MICROS)
    assert sum(seen.path == "/v2/pricing/current" for seen in wire.seen) == 2
    assert all(seen.headers["authorization"] == "Bearer made-up-key-4711" for seen in wire.seen)


@pytest.mark.parametrize("status", ["Allocated", "Preempting", "Open", "Paused"])
async def test_a_second_slot_is_not_told_to_outbid_the_first_one(clock: SteppedClock, status: str) -> None:
    """The price to win was our own limit and a cent, above every limit of ours: no second machine was ever rented."""
    first = bid(limit_price="$1.60", region="eu-central1-b", status=status)
    async with spot_bids.mithril_saying(spot_bids.listing(first), clock) as (mithril, _):
        await mithril.instances()
        question = asked(gpus=1, gpu_models=("A100 SXM4",))
        told = {offer.host_id: offer for offer in await mithril.offers(question)}["pool/eu-central1-b/it_a100x1"]
        assert (told.floor is None) is told.is_price_unknown is (status in {"Allocated", "Preempting"})
        assert told.price_paid == money.per_hour("1.2")
        # The listing has not shown that bid for so long that no price of the market is made with it.
        clock.advance(catalogue.OWN_KEPT_SECONDS)
        (later,) = [offer for offer in await mithril.offers(question) if offer.host_id == told.host_id]
        assert later.floor == money.per_hour("1.61")


async def test_no_disk_that_a_question_names_rules_a_pool_out_for_another_workload(clock: SteppedClock) -> None:
    """Offers are kept between questions: one with the asked size hid its pool from a workload with a larger disk."""
    async with spot_bids.mithril_saying(spot_bids.project, clock) as (mithril, _):
        found = [await mithril.offers(asked(gpus=1, disk_gb=size)) for size in (0.0, 20.0)]
    assert found[0] == found[1]
    assert min(offer.disk_gb for offer in found[0]) >= 100_000


async def test_a_pool_without_a_price_is_offered_as_unknown(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(spot_bids.project, clock) as (mithril, _):
        (full,) = await mithril.offers(asked(gpus=8))
        (silent,) = await mithril.offers(asked(gpus=1, gpu_models=("B200",), max_price=money.per_hour(1)))
    assert (full.gpu, full.vram_mb, full.floor, full.is_price_unknown) == ("H100 SXM", 80 * 1024, None, True)
    assert full.price_paid == money.per_hour(8)
    assert (silent.floor, silent.price_paid, silent.is_price_unknown) == (None, None, True)
    assert silent.vram_mb == 192 * 1024, "the house's own list knows the memory that the market does not tell"


async def test_only_what_was_asked_for_is_an_offer(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(spot_bids.project, clock) as (mithril, _):
        assert list(await mithril.offers(asked(gpus=4))) == [], "TPUs are no GPUs"
        assert list(await mithril.offers(asked(gpus=1, tenures=frozenset({Tenure.ON_DEMAND})))) == []
        (american,) = await mithril.offers(asked(gpus=1, gpu_models=("A100 SXM4",), regions=("US",)))
        (narrowed,) = await mithril.offers(asked(gpus=1, offer_ids=("it_a100x1@eu-central1-b",)))
    assert american.offer_id == "it_a100x1@us-central3-a"
    assert narrowed.offer_id == "it_a100x1@eu-central1-b"


async def test_a_pool_above_the_asked_price_is_offered_because_a_bid_may_wait_there(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(spot_bids.project, clock) as (mithril, _):
        found = await mithril.offers(asked(gpus=1, gpu_models=("A100 SXM4",), max_price=money.per_hour("1.5")))
    floors = [offer.floor for offer in found if offer.floor is not None]
    assert floors == sorted(floors)
    assert max(floors) > money.per_hour("1.5")


async def test_a_catalogue_that_cannot_be_read_is_no_empty_one(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        return Says({"data": []}) if seen.path == "/v2/spot/availability" else spot_bids.project(seen)

    async with spot_bids.mithril_saying(answers, clock) as (mithril, _):
        with pytest.raises(market_errors.Malformed):
            await mithril.offers(asked(gpus=1))


async def test_nothing_is_sold_before_the_price_of_a_disk_is_set(clock: SteppedClock) -> None:
    async with spot_bids.mithril_saying(spot_bids.project, clock, disk_micros=None) as (mithril, wire):
        assert "disk_per_gb_month" in mithril.not_sold()[Tenure.INTERRUPTIBLE]
        with pytest.raises(market_errors.Rejected, match="disk_per_gb_month"):
            await mithril.rent(spot_bids.OFFERED, spot_bids.ORDER, "gpubid:0123456789ab:train:0:0123456789abcdef")
    assert wire.seen == []
