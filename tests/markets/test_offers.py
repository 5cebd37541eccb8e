"""Questions for offers: their filters, the second check, and their cost in rows."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from tests.markets.scene import asked, vast_saying
from tests.markets.wire import Answers, Says, Seen

BOTH = frozenset({Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND})
ON_DEMAND = frozenset({Tenure.ON_DEMAND})


def row(offer_id: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": offer_id,
        "machine_id": 5000 + offer_id,
        "host_id": 7000,
        "num_gpus": 1,
        "gpu_name": "RTX 4090",
        "gpu_ram": 24564,
        "dlperf": 99.0,
        "disk_space": 500.0,
        "inet_up": 600.0,
        "inet_down": 800.0,
        "storage_cost": 0.2,
        "dph_base": 0.4,
        "min_bid": 0.2,
        "reliability2": 0.99,
        "verification": "verified",
        "geolocation": "Oregon, US",
        "rentable": True,
    } | changes


def shelves(bids: list[dict[str, Any]], asks: list[dict[str, Any]] | None = None) -> Answers:
    """Answer a bid search with the one and an on-demand search with the other."""

    def answers(seen: Seen) -> Says:
        if seen.path == "/api/v0/gpu_names/unique/":
            return Says({"gpu_names": ["RTX 9999 Ultra"]})
        return Says({"offers": bids if seen.json["type"] == "bid" else asks or []})

    return answers


async def test_a_question_asks_for_what_is_required(clock: SteppedClock) -> None:
    question = asked(
        gpus=2,
        gpu_models=(gpu.model("rtx_3090_ti"), gpu.model("rtx 4090")),
        min_vram_mb=24_000,
        min_reliability=0.98,
        min_inet_down_mbps=100.0,
        datacenter_only=True,
        regions=("us", "de"),
        max_price=money.per_hour("0.5"),
        host_ids=("5101", "5102"),
        offer_ids=("31000001",),
        disk_gb=40.0,
        max_rows=20,
    )
    async with vast_saying(shelves([]), clock) as (vast, wire):
        assert await vast.offers(question) == []
    assert [seen.path for seen in wire.seen] == ["/api/v0/bundles/"]
    assert wire.seen[0].json == {
        "external": {"eq": False},
        "rentable": {"eq": True},
        "verified": {"eq": True},
        "datacenter": {"eq": True},
        "num_gpus": {"eq": 2},
        "gpu_name": {"in": ["RTX 3090 Ti", "RTX 3090 TI", "RTX 4090"]},
        "gpu_ram": {"gte": 24_000},
        "reliability": {"gte": 0.98},
        "inet_down": {"gte": 100.0},
        "geolocation": {"in": ["US", "DE"]},
        "dph_total": {"lte": 0.5},
        "machine_id": {"in": [5101, 5102]},
        "ask_contract_id": {"in": [31000001]},
        "disk_space": {"gte": 40.0},
        "order": [["dlperf_per_dphtotal", "desc"]],
        "type": "bid",
        "limit": 20,
        "allocated_storage": 40.0,
    }


async def test_what_is_not_required_is_not_asked(clock: SteppedClock) -> None:
    async with vast_saying(shelves([]), clock) as (vast, wire):
        await vast.offers(asked(verified_only=False, regions=("Oregon", "US")))
    filters = {name for name, value in wire.seen[0].json.items() if isinstance(value, dict)}
    assert filters == {"external", "rentable", "num_gpus", "disk_space"}


async def test_only_what_is_told_to_be_in_a_data_centre_passes_where_that_is_required(clock: SteppedClock) -> None:
    bids = [row(1, hosting_type=1), row(2, hosting_type=0), row(3, hosting_type=None), row(4)]
    async with vast_saying(shelves(bids), clock) as (vast, _):
        anywhere = await vast.offers(asked())
        told = await vast.offers(asked(datacenter_only=True))
    assert [offer.is_datacenter for offer in anywhere] == [True, False, None, None]
    assert [offer.offer_id for offer in told] == ["1"]


async def test_the_ask_of_a_bid_offer_is_asked_for_by_its_contract_id(clock: SteppedClock) -> None:
    bids = [row(1, dph_base=0.2), row(2, dph_base=0.21, min_bid=0.21)]
    asks = [row(1, dph_base=0.4, min_bid=0.33), row(3)]
    async with vast_saying(shelves(bids, asks), clock) as (vast, wire):
        found = await vast.offers(asked(disk_gb=40.0))
    assert wire.seen[1].json == {
        "ask_contract_id": {"in": [1, 2]},
        "rentable": {"eq": True},
        "type": "on-demand",
        "limit": 2,
        "allocated_storage": 40.0,
    }
    prices = [(offer.offer_id, offer.floor, offer.ask) for offer in found]
    assert prices == [
        ("1", money.per_hour("0.2"), money.per_hour("0.4")),
        # A sample may miss it: the ask stays unknown, the offer stays.
        ("2", money.per_hour("0.21"), None),
    ]


async def test_on_demand_alone_is_one_search(clock: SteppedClock) -> None:
    async with vast_saying(shelves([], [row(1)]), clock) as (vast, wire):
        found = await vast.offers(asked(tenures=ON_DEMAND, max_price=money.per_hour("0.41")))
    assert [seen.json["type"] for seen in wire.seen] == ["on-demand"]
    assert [(offer.ask, offer.floor) for offer in found] == [(money.per_hour("0.4"), money.per_hour("0.2"))]


UNASKED = {
    "gpus": row(9, num_gpus=2),
    "model": row(9, gpu_name="RTX 3090"),
    "vram": row(9, gpu_ram=16_000),
    "reliability": row(9, reliability2=0.9),
    "inet": row(9, inet_down=10.0),
    "disk": row(9, disk_space=15.0),
    "unverified": row(9, verification="unverified"),
    "host": row(9, machine_id=1),
    "price with its disk": row(9, min_bid=0.2990, storage_cost=0.2),
    "taken": row(9, rentable=False),
    "disk only": row(9, num_gpus=0, gpu_name="N/A", min_bid=None, resource_type="disk"),
}


@pytest.mark.parametrize("stray", UNASKED.values(), ids=UNASKED)
async def test_filters_are_checked_again(clock: SteppedClock, stray: dict[str, Any]) -> None:
    question = asked(
        gpu_models=(gpu.model("RTX 4090"),),
        min_vram_mb=24_000,
        min_reliability=0.95,
        min_inet_down_mbps=100.0,
        host_ids=("5001", "5009"),
        max_price=money.per_hour("0.3"),
    )
    async with vast_saying(shelves([row(1), stray]), clock) as (vast, _):
        assert [offer.offer_id for offer in await vast.offers(question)] == ["1"]


async def test_an_operators_query_is_asked_and_checked_again(clock: SteppedClock) -> None:
    question = asked(query="cuda_vers>=12.4 gpu_ram>=20 gpu_name=rtx_3090_ti", min_vram_mb=16_000)
    fitting = row(1, gpu_name="RTX 3090 Ti", cuda_max_good=12.6)
    strays = [
        row(2, gpu_name="RTX 3090 Ti", cuda_max_good=12.0),
        row(3, gpu_name="RTX 3090", cuda_max_good=12.6),
        row(4, gpu_name="RTX 3090 Ti", cuda_max_good=12.6, gpu_ram=19_000),
    ]
    async with vast_saying(shelves([fitting, *strays]), clock) as (vast, wire):
        assert [offer.offer_id for offer in await vast.offers(question)] == ["1"]
    body = wire.seen[0].json
    assert body["cuda_max_good"] == {"gte": 12.4}
    # The stricter of the operator's figure and the requirement's; models in the vendor's spelling.
    assert body["gpu_ram"] == {"gte": 20_000.0}
    assert body["gpu_name"] == {"in": ["RTX 3090 Ti", "RTX 3090 TI"]}


async def test_a_query_that_cannot_be_asked_names_its_word(clock: SteppedClock) -> None:
    async with vast_saying(shelves([]), clock) as (vast, wire):
        with pytest.raises(market_errors.Malformed, match="gpu_rm"):
            await vast.offers(asked(query="gpu_rm>=24"))
    assert wire.seen == []


async def test_an_unknown_model_is_looked_up_once(clock: SteppedClock) -> None:
    async with vast_saying(shelves([]), clock) as (vast, wire):
        for _ in range(2):
            await vast.offers(asked(gpu_models=(gpu.model("rtx_9999_ultra"),)))
    assert [seen.path for seen in wire.seen].count("/api/v0/gpu_names/unique/") == 1
    assert wire.seen[1].json["gpu_name"] == {"in": ["RTX 9999 Ultra", "RTX 9999 ULTRA"]}


@pytest.mark.parametrize("says", [Says(b"<html>", 403), Says(b"[]"), Says({"gpu_names": None})], ids=str)
async def test_a_look_up_that_fails_stops_no_question(clock: SteppedClock, says: Says) -> None:
    def answers(seen: Seen) -> Says:
        return says if "gpu_names" in seen.path else Says({"offers": []})

    async with vast_saying(answers, clock) as (vast, wire):
        assert await vast.offers(asked(gpu_models=(gpu.model("rtx_9999_ultra"),))) == []
    assert wire.seen[-1].json["gpu_name"] == {"in": ["RTX 9999 ULTRA"]}


async def test_rows_are_counted_as_the_market_counts_them(clock: SteppedClock) -> None:
    bids = [row(1), row(1), row(2, rentable=False), row(3, dph_base=-1)]
    async with vast_saying(shelves(bids, [row(1)]), clock) as (vast, _):
        await vast.offers(asked())
        assert vast.rows_today == 5
        clock.advance(3 * 3600)
        assert vast.rows_today == 0


async def test_both_searches_fit_into_what_is_left_of_the_day(clock: SteppedClock) -> None:
    async with vast_saying(shelves([row(n) for n in range(1, 5)], [row(1)]), clock, daily_rows=10) as (vast, wire):
        await vast.offers(asked(max_rows=32))
        assert wire.seen[0].json["limit"] == 5
        await vast.offers(asked(max_rows=32))
        assert wire.seen[2].json["limit"] == 2
        with pytest.raises(market_errors.Throttled) as caught:
            await vast.offers(asked())
    assert len(wire.seen) == 4
    assert caught.value.until == datetime(2026, 11, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    "headers", [{}, {"Retry-After": "7200", "X-RateLimit-Reset": "1793923200"}], ids=["bare", "full"]
)
async def test_the_daily_quota_closes_searches_until_midnight(clock: SteppedClock, headers: dict[str, str]) -> None:
    says = Says({"success": False, "error": "search_quota_exceeded", "msg": "quota"}, 429, headers)
    async with vast_saying(says, clock) as (vast, wire):
        for _ in range(2):
            with pytest.raises(market_errors.Throttled) as caught:
                await vast.offers(asked())
            assert caught.value.until == datetime(2026, 11, 6, tzinfo=UTC)
        assert len(wire.seen) == 1
        wire.answers = shelves([])
        clock.advance(2 * 3600)
        assert await vast.offers(asked()) == []


FAILURES = [
    (Says({"success": False, "error": "auth_error", "msg": "Invalid user key"}, 404), market_errors.Unauthorized),
    (
        Says({"success": False, "error": "auth_error", "msg": "This action requires login."}, 403),
        market_errors.Unauthorized,
    ),
    (Says({"success": False, "msg": "Session expired. Please log in again."}, 404), market_errors.Unauthorized),
    (Says(b"", 401), market_errors.Unauthorized),
    (Says({"success": False, "error": "invalid_request", "msg": "Invalid json body"}, 400), market_errors.Malformed),
    (Says(b"<html>", 403), market_errors.Unavailable),
    (Says(b"", 404), market_errors.Unavailable),
    (Says(b"<html>", 503), market_errors.Unavailable),
    (Says(b"", 302), market_errors.Unavailable),
    (Says(b'{"offers":['), market_errors.Malformed),
    (Says({"success": False}), market_errors.Malformed),
    (Says(b"too frequent", 429), market_errors.Throttled),
]


@pytest.mark.parametrize(("says", "error"), FAILURES, ids=range(len(FAILURES)))
async def test_a_search_that_fails_is_never_an_empty_answer(
    clock: SteppedClock, says: Says, error: type[market_errors.MarketError]
) -> None:
    async with vast_saying(says, clock) as (vast, _):
        with pytest.raises(market_errors.MarketError) as caught:
            await vast.offers(asked())
    assert type(caught.value) is error
