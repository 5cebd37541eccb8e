"""Our Mithril before the simulated one over real HTTP: auctions, prices paid, notices, and what its cards leave out."""

import dataclasses
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from agent.act.orders import ending_by_label
from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import MarketEventKind
from agent.domain.market.offer import Offer
from agent.domain.money import UsdPerHour
from agent.markets import market_errors
from agent.simulator.mithril.climate_table import Mithril
from tests.markets.bench_mithril import AuctionBench, mithril_bench
from tests.markets.scene import LABEL, asked
from tests.support.market import STILL

FREE = "us-central3-a"
"""The region of a pool whose price is $1.00, with three machines free."""


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[AuctionBench]:
    async with mithril_bench() as bench:
        yield bench


async def pool(bench: AuctionBench) -> Offer:
    return next(one for one in await bench.offers() if FREE in one.region)


def rate(dollars: str) -> UsdPerHour:
    return money.per_hour(dollars)


async def test_the_price_paid_is_not_the_bid(bench: AuctionBench) -> None:
    offer = await pool(bench)
    instance_id = await bench.rent(offer, rate("7.50"))
    waits = await bench.market.instance(instance_id)
    assert (waits.state, waits.billing_rate, waits.bid) == (InstanceState.PENDING, money.FREE, rate("7.50"))
    row = await bench.running(instance_id)
    assert (row.gpu_rate, row.limit, row.bid) == (rate("1"), rate("7.50"), rate("7.50"))
    await bench.market.rebid(instance_id, rate("8.00"))
    await bench.simulated.advance(600.0)
    (later,) = await bench.market.instances()
    assert (later.gpu_rate, later.limit) == (rate("1"), rate("8"))
    lines = await bench.market.charges(bench.clock.now() - timedelta(days=1), bench.clock.now())
    charged = (await bench.simulated.truth())["charged_total"]
    assert money.total(line.amount for line in lines).dollars == pytest.approx(charged, abs=1e-4)
    assert charged < 0.5


async def test_a_loss_has_a_notice_and_a_higher_bid_brings_it_back(bench: AuctionBench) -> None:
    offer = await pool(bench)
    instance_id = await bench.rent(offer, rate("2.00"))
    await bench.running(instance_id)
    began = bench.clock.now()
    await bench.rival(offer, 3.00)
    await bench.simulated.advance(130.0)
    (warned,) = await bench.market.instances()
    assert (warned.state, warned.bills_gpu) == (InstanceState.RUNNING, True)
    assert warned.notice_at is not None
    assert bench.clock.now() < warned.notice_at <= bench.clock.now() + timedelta(minutes=5)
    lost = await bench.until(instance_id, InstanceState.PAUSED, within=400.0)
    (listed,) = await bench.market.instances()
    assert (listed.state, listed.notice_at, listed.is_wanted_running) == (InstanceState.PAUSED, None, True)
    assert lost.billing_rate == lost.disk_rate > money.FREE, "the kept disk costs the operator's figure"
    (event,) = [one for one in await bench.market.events(began) if one.kind is MarketEventKind.BID_LOST]
    assert (event.instance_id, event.your_bid, event.at) == (instance_id, rate("2"), warned.notice_at)
    await bench.market.rebid(instance_id, rate("3.50"))
    back = await bench.running(instance_id)
    assert (back.notice_at, back.limit) == (None, rate("3.50"))
    assert back.gpu_rate <= rate("3.50")


async def test_every_start_waits_for_an_auction_and_a_pause_takes_it_back(bench: AuctionBench) -> None:
    instance_id = await bench.rent(await pool(bench))
    await bench.market.pause(instance_id)
    await bench.simulated.advance(3600.0)
    parked = await bench.market.instance(instance_id)
    assert (parked.state, parked.is_wanted_running) == (InstanceState.PAUSED, False)
    assert parked.billing_rate == money.FREE, "a bid that never won keeps no disk"
    assert await bench.market.resume(instance_id) is False
    assert (await bench.market.instance(instance_id)).state is InstanceState.PENDING
    await bench.running(instance_id)
    await bench.market.pause(instance_id)
    await bench.market.pause(instance_id)
    await bench.simulated.advance(60.0)
    (paused,) = await bench.market.instances()
    assert (paused.state, paused.bills_gpu) == (InstanceState.PAUSED, False)
    assert (await bench.simulated.truth())["billing_now"] == []


async def test_a_full_pool_has_no_price_to_win_and_a_bid_there_waits(bench: AuctionBench) -> None:
    (full,) = [one for one in await bench.market.offers(asked(gpus=8)) if "us-central2-a" in one.region]
    assert (full.floor, full.is_price_unknown, full.price_paid) == (None, True, rate("8"))
    instance_id = await bench.rent(full, rate("8.01"))
    await bench.simulated.advance(600.0)
    (waits,) = await bench.market.instances()
    assert (waits.instance_id, waits.state, waits.billing_rate) == (instance_id, InstanceState.PENDING, money.FREE)


async def test_a_pool_that_tells_its_price_is_won_at_it() -> None:
    climate = STILL.having(Mithril(tells_win_price=1.0))
    async with mithril_bench(climate=climate) as bench:
        full = next(one for one in await bench.offers(gpus=8) if "us-central2-a" in one.region)
        assert full.floor is not None
        await bench.running(await bench.rent(full, full.floor))


async def test_pages_are_read_to_their_end(bench: AuctionBench) -> None:
    offer = await pool(bench)
    ids = [await bench.rent(offer) for _ in range(5)]
    await bench.simulated.weather("paged_list", rows=2)
    assert [row.instance_id for row in await bench.market.instances()] == ids
    await bench.simulated.advance(300.0)
    assert {row.gpu for row in await bench.market.instances()} == {"A100 SXM4"}


async def test_a_kill_by_label_ends_bids_that_wait_and_bids_that_run(bench: AuctionBench) -> None:
    """It has no ledger, so the short labels are all that it knows."""
    offer = await pool(bench)
    runs = await bench.rent(offer)
    await bench.running(runs)
    waits = await bench.rent(offer, rate("0.50"))
    (fleet,), trouble = await ending_by_label.fleets({"mithril": bench.market})
    assert (fleet.fleet_id, fleet.instances, fleet.rate, trouble) == ("0123456789ab", 2, rate("1"), {})
    ending = ending_by_label.EndingByLabel({"mithril": bench.market}, fleet.fleet_id, keep_disks=False)
    first = await ending.round()
    assert first.slots == {("mithril", runs): "slot 0", ("mithril", waits): "slot 0"}
    assert set(first.tried.values()) == {("release confirmed",)}
    await ending.round()
    await ending.round()
    assert ending.is_done
    assert await bench.contracts() == []


async def test_a_limit_under_the_minimum_is_told_apart(bench: AuctionBench) -> None:
    offer = await pool(bench)
    instance_id = await bench.rent(offer)
    bench.world.pools["it_RrgkIZz6c9BZu5gi", FREE].pool = dataclasses.replace(
        bench.world.pools["it_RrgkIZz6c9BZu5gi", FREE].pool, minimum_cents=50
    )
    with pytest.raises(market_errors.Rejected) as caught:
        await bench.rent(offer, rate("0.40"), label=f"{LABEL[:-1]}0")
    assert caught.value.reason == "bid_too_low"
    assert [row.instance_id for row in await bench.market.instances()] == [instance_id]


async def test_the_account_shows_its_project_and_the_markets_clock(bench: AuctionBench) -> None:
    before = await bench.market.account()
    assert (before.credit, before.market_time) == (None, bench.clock.now())
    assert before.account_id == f"{bench.world.organization}/{bench.world.project}"
    await bench.simulated.weather("clock_skew", skew=120)
    assert (await bench.market.account()).market_time == bench.clock.now() + timedelta(seconds=120)
    await bench.simulated.weather("wrong_account")
    assert (await bench.market.account()).account_id != before.account_id
