"""Cards of prices: floors, bids, asks, disks."""

import pytest

from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.port import Terms
from tests.markets.bench import DISK_GB, Bench
from tests.markets.card import card
from tests.markets.scene import LABEL


@card("MC-10", "a bid at the floor, rounded up, runs")
async def bid_at_the_floor(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer, offer.floor)
    instance = await bench.running(instance_id)
    assert offer.floor is not None
    assert instance.bid is not None
    assert offer.floor <= instance.bid <= offer.floor + money.per_hour("0.0001")


@card("MC-11", "a bid under the floor is refused, its leftover is named, listed as paused, and ends when released")
async def bid_under_the_floor(bench: Bench) -> None:
    offer = await bench.offer()
    assert offer.floor is not None
    with pytest.raises(market_errors.Rejected) as caught:
        await bench.rent(offer, money.UsdPerHour(offer.floor.micros - 1_000))
    left = caught.value.leftover_id
    assert (caught.value.reason, left != "") == ("bid_too_low", True)
    assert [(one.instance_id, one.state, one.label) for one in await bench.market.instances()] == [
        (left, InstanceState.PAUSED, LABEL)
    ]
    assert (await bench.simulated.truth())["billing_now"] == [int(left)]
    await bench.market.release(left)
    assert (await bench.simulated.truth())["billing_now"] == []


@card("MC-12", "interruptible without a bid never leaves; the tenure of every rent can be read back")
async def tenure_read_back(bench: Bench) -> None:
    offer = await bench.offer()
    with pytest.raises(market_errors.Rejected):
        await bench.market.rent(offer, Terms(Tenure.INTERRUPTIBLE, None, DISK_GB, "x"), LABEL)
    assert await bench.calls("PUT", "/asks/") == 0
    other = next(one for one in await bench.offers() if one.host_id != offer.host_id)
    bid = await bench.market.instance(await bench.rent(offer))
    ask = await bench.market.instance(
        await bench.market.rent(other, Terms(Tenure.ON_DEMAND, None, DISK_GB, "x"), LABEL)
    )
    assert (bid.tenure, bid.bid is not None) == (Tenure.INTERRUPTIBLE, True)
    assert (ask.tenure, ask.bid, ask.gpu_rate) == (Tenure.ON_DEMAND, None, other.ask)


@card("MC-13", "in a bid search the price shown is the floor; the ask comes from a second, narrow search")
async def asks_of_bid_offers(bench: Bench) -> None:
    both = await bench.offers()
    alone = await bench.offers(tenures=frozenset({Tenure.ON_DEMAND}), offer_ids=tuple(one.offer_id for one in both))
    asks = {one.offer_id: one.ask for one in alone}
    assert {one.offer_id: one.ask for one in both} == asks
    assert any(one.ask != one.floor for one in both)


@card("MC-14", "the disk is priced by the rented size, not by the eight gigabytes of a quote")
async def disk_of_the_contract(bench: Bench) -> None:
    offer = await bench.offer()
    terms = Terms(Tenure.INTERRUPTIBLE, money.per_hour(2), 120.0, "ubuntu:22.04")
    instance = await bench.market.instance(await bench.market.rent(offer, terms, LABEL))
    assert instance.disk_gb == 120.0
    assert abs(instance.disk_rate.micros - offer.disk_rate(120.0).micros) <= 1


@card("MC-15", "the standing bid is the GPU rate of the record, before and after a new bid")
async def bid_on_the_record(bench: Bench) -> None:
    offer = await bench.offer()
    assert offer.floor is not None
    assert offer.ask is not None
    bid = money.rounded_up(offer.floor.scaled(1.01), 4)
    instance_id = await bench.rent(offer, bid)
    assert (await bench.market.instance(instance_id)).bid == bid
    higher = money.rounded_up(offer.floor.scaled(1.02), 4)
    await bench.market.rebid(instance_id, higher)
    assert (await bench.market.instance(instance_id)).bid == min(higher, offer.ask)


@card("MC-16", "the market echoes our own bid as the floor of our lease; the record keeps the host's floor")
async def echo(bench: Bench) -> None:
    offer = await bench.offer()
    assert offer.floor is not None
    assert offer.ask is not None
    bid = money.rounded_up(money.UsdPerHour((offer.floor.micros + offer.ask.micros) // 2), 4)
    instance_id = await bench.rent(offer, bid)
    await bench.running(instance_id)
    await bench.simulated.advance(2 * 3600.0)
    echoed = [one.floor for one in await bench.offers(offer_ids=(offer.offer_id,))]
    instance = await bench.market.instance(instance_id)
    # Rounded to a tenth of a cent, so equal within half of one.
    assert [abs(floor.micros - bid.micros) <= 500 for floor in echoed if floor is not None] == [True]
    assert instance.floor == offer.floor


@card("MC-17", "a held host is recognised in every slice it offers")
async def slices_of_a_held_host(bench: Bench) -> None:
    found = [one for gpus in (1, 2, 4) for one in await bench.offers(gpus=gpus, max_rows=64)]
    by_host: dict[str, set[str]] = {}
    for one in found:
        by_host.setdefault(one.host_id, set()).add(one.offer_id)
    host = next(host for host, offers in by_host.items() if len(offers) > 1)
    offer = next(one for one in found if one.host_id == host and one.floor is not None)
    instance = await bench.market.instance(await bench.rent(offer))
    assert instance.host_id == host
    narrowed = [one for gpus in (1, 2, 4) for one in await bench.offers(gpus=gpus, host_ids=(host,))]
    assert {one.host_id for one in narrowed} <= {host}
