"""Cards of listings and their meaning, of the account and of its bill."""

from datetime import timedelta

import pytest

from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.markets import market_errors
from agent.markets.port import Capability
from tests.markets.bench import Bench
from tests.markets.card import card


@card("MC-27", "a listing of several pages is complete", credit=10_000.0)
async def several_pages(bench: Bench) -> None:
    found = [one for gpus in (1, 2, 4, 8) for one in await bench.offers(gpus=gpus, max_rows=512)]
    offers = {one.host_id: one for one in found if one.floor is not None}
    ids = [await bench.rent(one) for one in list(offers.values())[:28]]
    assert len(ids) > 25
    assert [one.instance_id for one in await bench.market.instances()] == ids


@card("MC-28", "a listing that cannot be read is an error, never an empty or shorter one")
async def broken_listing(bench: Bench) -> None:
    await bench.rent(await bench.offer())
    for fault, error in (
        ("html_403", market_errors.Unavailable),
        ("server_error_before", market_errors.Unavailable),
        ("reset", market_errors.Unavailable),
        ("truncated", market_errors.MarketError),
        ("malformed", market_errors.Malformed),
        ("throttle_json", market_errors.Throttled),
    ):
        await bench.simulated.weather(fault, route="GET")
        with pytest.raises(error):
            await bench.market.instances()
        await bench.simulated.control("DELETE", "/weather")
        await bench.simulated.advance(60.0)
    assert len(await bench.market.instances()) == 1


@card("MC-29", "a read that fails once is asked again within a second and a half")
async def read_again(bench: Bench) -> None:
    await bench.simulated.weather("server_error_before", route="GET /users", seconds=0.1)
    began = bench.clock.monotonic()
    assert (await bench.market.account()).account_id
    assert 0 < bench.clock.monotonic() - began <= 1.5
    assert await bench.calls("GET", "/users/current") == 2


@card("MC-30", "null for an id is gone; a release of a gone instance counts as done, and may be sent again")
async def gone(bench: Bench) -> None:
    instance_id = await bench.rent(await bench.offer())
    for _ in range(2):
        await bench.market.release(instance_id)
    for unknown in (instance_id, "999999"):
        with pytest.raises(market_errors.NotFound):
            await bench.market.instance(unknown)
        with pytest.raises(market_errors.NotFound):
            await bench.market.pause(unknown)
        with pytest.raises(market_errors.NotFound):
            await bench.market.rebid(unknown, money.per_hour(1))
        await bench.market.release(unknown)


@card("MC-31", "a start whose GPU is taken is queued, and a pause takes it back")
async def queued_start(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer)
    await bench.running(instance_id)
    await bench.market.pause(instance_id)
    assert (await bench.market.instance(instance_id)).state is InstanceState.PAUSED
    rival = await bench.on_demand_rival(offer)
    assert await bench.market.resume(instance_id) is False
    assert (await bench.market.instance(instance_id)).state is InstanceState.PAUSED
    await bench.market.pause(instance_id)
    await bench.no_rival(rival)
    await bench.simulated.advance(6 * 3600.0)
    assert (await bench.market.instance(instance_id)).state is InstanceState.PAUSED
    assert await bench.market.resume(instance_id) is True
    await bench.until(instance_id, InstanceState.RUNNING)


@card("MC-32", "an outbid looks like a pause, keeps its disk, and the inbox says why")
async def outbid(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer)
    instance = await bench.running(instance_id)
    began = bench.clock.now()
    await bench.rival(offer, instance.gpu_rate.dollars * 1.5)
    paused = await bench.until(instance_id, InstanceState.PAUSED)
    assert paused.billing_rate == paused.disk_rate > money.FREE
    events = [one for one in await bench.market.events(began - timedelta(seconds=1)) if one.kind == "outbid"]
    assert [one.instance_id for one in events] == [instance_id]
    assert events[0].your_bid is not None
    assert events[0].new_floor is not None
    assert events[0].new_floor > events[0].your_bid
    assert Capability.EVENTS in bench.market.capabilities()


@card("MC-33", "a higher bid brings an outbid instance back on its host")
async def raised_bid(bench: Bench) -> None:
    offer = await bench.offer()
    assert offer.ask is not None
    instance_id = await bench.rent(offer, offer.floor)
    instance = await bench.running(instance_id)
    await bench.rival(offer, instance.gpu_rate.dollars * 1.01)
    await bench.until(instance_id, InstanceState.PAUSED)
    await bench.market.rebid(instance_id, instance.gpu_rate.scaled(1.1))
    await bench.until(instance_id, InstanceState.RUNNING)


@card("MC-34", "an offline host is free, a silent one counts as paid, an unknown state is no loss")
async def offline(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer)
    await bench.running(instance_id)
    await bench.simulated.weather("unknown_status", status="dreaming", seconds=60)
    unread = await bench.market.instance(instance_id)
    assert (unread.state, unread.billing_rate) == (InstanceState.UNKNOWN, unread.gpu_rate + unread.disk_rate)
    await bench.simulated.advance(61)
    await bench.simulated.weather("unknown_status", status="unknown", seconds=60)
    unheard = await bench.market.instance(instance_id)
    assert (unheard.state, unheard.billing_rate) == (InstanceState.OFFLINE, unread.billing_rate)
    await bench.simulated.advance(61)
    await bench.simulated.weather("host_offline", machine_id=int(offer.host_id), seconds=600)
    silent = await bench.until(instance_id, InstanceState.OFFLINE)
    assert silent.billing_rate == money.FREE
    await bench.simulated.advance(601)
    await bench.until(instance_id, InstanceState.RUNNING)


@card("MC-35", "a pull that hangs is loading, a failed one is distinguished from a pause")
async def pulls(bench: Bench) -> None:
    await bench.simulated.weather("stuck_loading", seconds=3600)
    instance_id = await bench.rent(await bench.offer())
    await bench.simulated.advance(1800)
    assert (await bench.market.instance(instance_id)).state is InstanceState.LOADING
    await bench.market.release(instance_id)
    await bench.simulated.control("DELETE", "/weather")
    await bench.simulated.weather("pull_failure")
    failed = await bench.until(await bench.rent(await bench.offer()), InstanceState.FAILED, within=86_400)
    assert failed.message


@card("MC-36", "the end of an instance is read from its end date, which does not change while time passes")
async def contract_end(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer)
    first = await bench.market.instance(instance_id)
    await bench.simulated.advance(3600)
    second = await bench.market.instance(instance_id)
    assert first.ends_at == second.ends_at == offer.ends_at
    assert first.created_at == second.created_at


@card("MC-37", "the account shows the owner of the key, the credit and the market's clock", credit=25.0)
async def account(bench: Bench) -> None:
    before = await bench.market.account()
    assert (before.credit, before.market_time) == (money.usd(25), bench.clock.now())
    await bench.simulated.weather("clock_skew", skew=120)
    assert (await bench.market.account()).market_time == bench.clock.now() + timedelta(seconds=120)
    await bench.simulated.weather("wrong_account")
    assert (await bench.market.account()).account_id != before.account_id


@card("MC-38", "the bill adds up to the charges")
async def charges(bench: Bench) -> None:
    since = bench.clock.now()
    ids = [await bench.rent(one) for one in {o.host_id: o for o in await bench.offers(max_rows=4)}.values()]
    await bench.running(ids[0])
    await bench.simulated.advance(5 * 3600.0)
    lines = await bench.market.charges(since, bench.clock.now())
    assert {line.instance_id for line in lines} <= set(ids)
    assert ids[0] in {line.instance_id for line in lines}
    charged = (await bench.simulated.truth())["charged_total"]
    assert money.total(line.amount for line in lines).dollars == pytest.approx(charged, abs=0.002 * len(ids))


@card("MC-39", "the billed traffic can be read from the record")
async def traffic(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer)
    await bench.running(instance_id)
    await bench.simulated.advance(3600)
    instance = await bench.market.instance(instance_id)
    contract = next(one for one in await bench.contracts() if one["id"] == int(instance_id))
    cost = (
        instance.traffic_down_gb * instance.traffic_down_micros_per_gb
        + instance.traffic_up_gb * instance.traffic_up_micros_per_gb
    ) / money.MICROS
    assert cost == pytest.approx(contract["charged"]["bandwidth"], rel=0.01, abs=1e-6)
