"""Acceptance cards of a market adapter: what it must get right, each shown against the simulated market over real HTTP.

A card has an id that stays, a title that is a promise, and a play. test_cards.py plays every card on every market.
"""

import dataclasses
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.domain import gpu, money
from agent.domain.instance import InstanceState
from agent.domain.tenure import Tenure
from agent.markets import errors
from agent.markets.port import Capability, Terms
from agent.simulator import gate
from tests.markets.bench import DISK_GB, Bench
from tests.markets.scene import LABEL, asked

Play = Callable[[Bench], Awaitable[None]]


@dataclasses.dataclass(frozen=True, slots=True)
class Card:
    """One promise. `stage` is how the bench is set up for it."""

    card_id: str
    title: str
    play: Play
    stage: dict[str, Any]


CARDS: list[Card] = []


def card(card_id: str, title: str, **stage: Any) -> Callable[[Play], Play]:
    def enter(play: Play) -> Play:
        CARDS.append(Card(card_id, title, play, stage))
        return play

    return enter


def _published_doors() -> gate.Gate:
    return gate.Gate(thresholds=gate.PUBLISHED, searches_per_minute=gate.SEARCHES_PER_MINUTE)


# Orders and their replies


@card("MC-01", "a rent whose reply is lost leaves once, is in doubt, and its label finds the instance")
async def lost_reply(bench: Bench) -> None:
    offer = await bench.offer()
    await bench.simulated.weather("reset", route="PUT /asks", when="after")
    with pytest.raises(errors.Ambiguous):
        await bench.rent(offer)
    assert await bench.calls("PUT", "/asks/") == 1
    assert [instance.label for instance in await bench.market.instances()] == [LABEL]


@card("MC-02", "a rent dropped before it was done leaves once, is in doubt, and nothing is rented")
async def dropped_order(bench: Bench) -> None:
    offer = await bench.offer()
    await bench.simulated.weather("reset", route="PUT /asks", when="before")
    with pytest.raises(errors.Ambiguous):
        await bench.rent(offer)
    assert (await bench.calls("PUT", "/asks/"), list(await bench.market.instances())) == (1, [])


@card("MC-03", "every order whose reply proves nothing is in doubt and leaves once")
async def doubtful_replies(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer)
    orders: dict[tuple[str, str], Callable[[], Awaitable[Any]]] = {
        ("PUT", "/instances/bid_price/"): lambda: bench.market.rebid(instance_id, money.per_hour(1)),
        ("PUT", f"/instances/{instance_id}/"): lambda: bench.market.pause(instance_id),
        ("DELETE", f"/instances/{instance_id}/"): lambda: bench.market.release(instance_id),
    }
    for fault in ("html_403", "server_error_before", "malformed", "truncated", "reset"):
        await bench.simulated.weather(fault)
        for (method, part), order in orders.items():
            before = await bench.calls(method, part)
            with pytest.raises(errors.Ambiguous):
                await order()
            assert await bench.calls(method, part) == before + 1, (fault, method)
        await bench.simulated.control("DELETE", "/weather")


@card("MC-04", "an order the market did and answered with 503 is in doubt, and the listing shows that it was done")
async def applied_then_503(bench: Bench) -> None:
    instance_id = await bench.rent(await bench.offer())
    await bench.simulated.weather("server_error_after", route="DELETE /instances")
    with pytest.raises(errors.Ambiguous):
        await bench.market.release(instance_id)
    assert list(await bench.market.instances()) == []


@card("MC-05", "a slow answer past the deadline is doubt for an order and ignorance for a question, in simulated time")
async def slow_answers(bench: Bench) -> None:
    offer = await bench.offer()
    await bench.simulated.weather("slow", delay=45.0)
    with pytest.raises(errors.Ambiguous):
        await bench.rent(offer)
    with pytest.raises(errors.Unavailable):
        await bench.market.instances()


@card("MC-06", "called too often, in any of its shapes, proves that nothing was done and says until when")
async def throttled(bench: Bench) -> None:
    offer = await bench.offer()
    for fault, fields in (
        ("throttle_text", {}),
        ("throttle_json", {"retry_after": 40}),
        ("throttle_retry_after", {"retry_after": 50}),
    ):
        await bench.simulated.weather(fault, route="PUT /asks", **fields)
        began = bench.clock.now()
        with pytest.raises(errors.Throttled) as caught:
            await bench.rent(offer)
        wait = timedelta(seconds=float(fields.get("retry_after", 12)))
        assert caught.value.until == began + wait, fault
        await bench.simulated.control("DELETE", "/weather")
        await bench.simulated.advance(60.0)
    assert await bench.contracts() == []


@card("MC-07", "calls keep the published thresholds by themselves", doors=_published_doors)
async def published_pace(bench: Bench) -> None:
    for _ in range(8):
        await bench.offers(max_rows=4)
    offers = {offer.host_id: offer for offer in await bench.offers() if offer.floor is not None}
    ids = [await bench.rent(offer) for offer in list(offers.values())[:3]]
    for instance_id in ids:
        await bench.market.instances()
        await bench.market.instance(instance_id)
        await bench.market.rebid(instance_id, money.per_hour(3))
        await bench.market.pause(instance_id)
        await bench.market.release(instance_id)
    statuses = {call["status"] for call in (await bench.simulated.truth())["calls"]}
    assert statuses == {200}


@card("MC-08", "an empty account is told apart from every other refusal", credit=0.0)
async def no_credit(bench: Bench) -> None:
    with pytest.raises(errors.OutOfFunds):
        await bench.rent(await bench.offer())


@card("MC-09", "a key nobody knows is Unauthorized on every call, never gone and never empty", key="some-other-key")
async def unknown_key(bench: Bench) -> None:
    for call in (
        bench.market.instances(),
        bench.market.instance("5"),
        bench.market.account(),
        bench.market.offers(asked()),
        bench.market.release("5"),
        bench.market.pause("5"),
        bench.market.charges(bench.clock.now() - timedelta(days=1), bench.clock.now()),
    ):
        with pytest.raises(errors.Unauthorized):
            await call


# Prices


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
    with pytest.raises(errors.Rejected) as caught:
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
    with pytest.raises(errors.Rejected):
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


@card("MC-14", "the disk is priced by what is rented, not by the eight gigabytes of a quote")
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


@card("MC-16", "the market echoes our own bid as the floor of what we hold; the record keeps the host's floor")
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


# Searches


@card("MC-18", "a search is a sample: what it leaves out can still be there", daily_rows=100_000)
async def sample(bench: Bench) -> None:
    seen = [frozenset(one.offer_id for one in await bench.offers(max_rows=5)) for _ in range(6)]
    assert len(set(seen)) > 1
    missing = next(iter(set().union(*seen) - seen[0]))
    assert [one.offer_id for one in await bench.offers(offer_ids=(missing,))] == [missing]


@card("MC-19", "disks for rent are no offers, and nothing unrentable is one")
async def no_disks(bench: Bench) -> None:
    raw = await bench.simulated.call("POST", "/bundles/", {"type": "bid", "limit": 512})
    odd = {str(row["id"]) for row in raw.body["offers"] if row["num_gpus"] == 0 or not row["rentable"]}
    assert odd
    found = await bench.offers(max_rows=512)
    assert found
    assert not odd & {one.offer_id for one in found}
    assert all(one.gpus == 1 and one.floor is not None for one in found)


@card("MC-20", "a model is found however the operator spells it")
async def spelling(bench: Bench) -> None:
    models = {one.gpu for one in await bench.offers(max_rows=64)}
    for model in sorted(models):
        written = gpu.model(model.lower().replace(" ", "_"))
        found = await bench.offers(gpu_models=(written,), max_rows=4)
        assert {one.gpu for one in found} == {model}


@card("MC-21", "a question narrowed to hosts or offers brings only those")
async def narrow(bench: Bench) -> None:
    found = await bench.offers()
    some = found[0], found[-1]
    by_host = await bench.offers(host_ids=tuple(one.host_id for one in some))
    by_offer = await bench.offers(offer_ids=tuple(one.offer_id for one in some))
    assert {one.host_id for one in by_host} == {one.host_id for one in some}
    assert {one.offer_id for one in by_offer} == {one.offer_id for one in some}


@card("MC-22", "an operator's query narrows the search and its answer")
async def operators_query(bench: Bench) -> None:
    found = await bench.offers(query="gpu_ram>=20 inet_down>100 cuda_vers>=12", max_rows=64)
    assert found
    assert all(one.vram_mb >= 20_000 and one.inet_down_mbps > 100 for one in found)
    with pytest.raises(errors.Malformed, match="gpu_rm"):
        await bench.offers(query="gpu_rm>=20")


@card("MC-23", "rows are counted as the market counts them")
async def rows(bench: Bench) -> None:
    for _ in range(3):
        await bench.offers(max_rows=8)
    assert getattr(bench.market, "rows_today", None) == (await bench.simulated.truth())["search_rows"]


@card("MC-24", "our own ration of rows ends the day's questions before the market's does", daily_rows=40)
async def own_ration(bench: Bench) -> None:
    async def ask_on() -> None:
        for _ in range(20):
            await bench.offers(max_rows=8)

    with pytest.raises(errors.Throttled) as caught:
        await ask_on()
    assert caught.value.until == datetime(2026, 11, 6, tzinfo=UTC)
    assert (await bench.simulated.truth())["search_rows"] <= 40


@card("MC-25", "the market's daily quota closes searches until midnight and nothing else")
async def quota(bench: Bench) -> None:
    await bench.simulated.weather("search_quota")
    for _ in range(2):
        with pytest.raises(errors.Throttled) as caught:
            await bench.offers()
        assert caught.value.until == datetime(2026, 11, 6, tzinfo=UTC)
    assert await bench.calls("POST", "/bundles/") == 1
    assert list(await bench.market.instances()) == []


@card("MC-26", "an offer that is taken is refused as gone, whatever the status")
async def taken_offer(bench: Bench) -> None:
    offer = await bench.offer()
    await bench.on_demand_rival(offer)
    with pytest.raises(errors.Rejected) as caught:
        await bench.market.rent(offer, Terms(Tenure.ON_DEMAND, None, DISK_GB, "x"), LABEL)
    assert caught.value.reason == "no_such_ask"
    assert await bench.contracts() == []


# Listings and what they mean


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
        ("html_403", errors.Unavailable),
        ("server_error_before", errors.Unavailable),
        ("reset", errors.Unavailable),
        ("truncated", errors.MarketError),
        ("malformed", errors.Malformed),
        ("throttle_json", errors.Throttled),
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


@card("MC-30", "null for an id is gone; a release of what is gone is done, and may be sent again")
async def gone(bench: Bench) -> None:
    instance_id = await bench.rent(await bench.offer())
    for _ in range(2):
        await bench.market.release(instance_id)
    for unknown in (instance_id, "999999"):
        with pytest.raises(errors.NotFound):
            await bench.market.instance(unknown)
        with pytest.raises(errors.NotFound):
            await bench.market.pause(unknown)
        with pytest.raises(errors.NotFound):
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


@card("MC-33", "a higher bid brings an outbid instance back where it stands")
async def raised_bid(bench: Bench) -> None:
    offer = await bench.offer()
    assert offer.ask is not None
    instance_id = await bench.rent(offer, offer.floor)
    instance = await bench.running(instance_id)
    await bench.rival(offer, instance.gpu_rate.dollars * 1.01)
    await bench.until(instance_id, InstanceState.PAUSED)
    await bench.market.rebid(instance_id, instance.gpu_rate.scaled(1.1))
    await bench.until(instance_id, InstanceState.RUNNING)


@card("MC-34", "a silent host is offline and free, an unknown word is no loss")
async def offline(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer)
    await bench.running(instance_id)
    await bench.simulated.weather("unknown_status", status="dreaming", seconds=60)
    assert (await bench.market.instance(instance_id)).state is InstanceState.UNKNOWN
    await bench.simulated.advance(61)
    await bench.simulated.weather("host_offline", machine_id=int(offer.host_id), seconds=600)
    silent = await bench.until(instance_id, InstanceState.OFFLINE)
    assert silent.billing_rate == money.FREE
    await bench.simulated.advance(601)
    await bench.until(instance_id, InstanceState.RUNNING)


@card("MC-35", "a pull that hangs is loading, one that failed is told from a pause")
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


@card("MC-36", "the end of a contract is read from its date, which stands still while time passes")
async def contract_end(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer)
    first = await bench.market.instance(instance_id)
    await bench.simulated.advance(3600)
    second = await bench.market.instance(instance_id)
    assert first.ends_at == second.ends_at == offer.ends_at
    assert first.created_at == second.created_at


# Account and bill


@card("MC-37", "the account tells who the key belongs to, what is left, and the market's clock", credit=25.0)
async def account(bench: Bench) -> None:
    before = await bench.market.account()
    assert (before.credit, before.market_time) == (money.usd(25), bench.clock.now())
    await bench.simulated.weather("clock_skew", skew=120)
    assert (await bench.market.account()).market_time == bench.clock.now() + timedelta(seconds=120)
    await bench.simulated.weather("wrong_account")
    assert (await bench.market.account()).account_id != before.account_id


@card("MC-38", "the bill adds up to what was charged")
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


@card("MC-39", "what the market bills for traffic can be read from the record")
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
