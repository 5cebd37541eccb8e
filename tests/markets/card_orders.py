"""Cards of orders and their replies."""

from datetime import timedelta

import pytest

from agent.domain import money
from agent.markets import market_errors
from agent.simulator.vast.http import call_gate
from tests.markets.bench import Bench
from tests.markets.card import card
from tests.markets.scene import asked


def _published_doors() -> call_gate.Gate:
    return call_gate.Gate(thresholds=call_gate.PUBLISHED, searches_per_minute=call_gate.SEARCHES_PER_MINUTE)


@card("MC-01", "a rent whose reply is lost leaves once, is in doubt, and its label finds the instance")
async def lost_reply(bench: Bench) -> None:
    offer = await bench.offer()
    await bench.simulated.weather("reset", route="PUT /asks", when="after")
    with pytest.raises(market_errors.Ambiguous):
        await bench.rent(offer)
    assert await bench.calls("PUT", "/asks/") == 1
    assert [instance.label for instance in await bench.market.instances()] == [bench.label]


@card("MC-02", "a rent dropped before it was done leaves once, is in doubt, and nothing is rented")
async def dropped_order(bench: Bench) -> None:
    offer = await bench.offer()
    await bench.simulated.weather("reset", route="PUT /asks", when="before")
    with pytest.raises(market_errors.Ambiguous):
        await bench.rent(offer)
    assert (await bench.calls("PUT", "/asks/"), list(await bench.market.instances())) == (1, [])


@card("MC-03", "every order whose reply proves nothing is in doubt and leaves once")
async def doubtful_replies(bench: Bench) -> None:
    offer = await bench.offer()
    instance_id = await bench.rent(offer)
    orders = bench.orders(instance_id)
    for fault in bench.doubtful:
        await bench.simulated.weather(fault)
        for (method, part), order in orders.items():
            before = await bench.calls(method, part)
            with pytest.raises(market_errors.Ambiguous):
                await order()
            assert await bench.calls(method, part) == before + 1, (fault, method)
        await bench.simulated.control("DELETE", "/weather")


@card("MC-04", "an order the market did and answered with 503 is in doubt, and the listing shows that it was done")
async def applied_then_503(bench: Bench) -> None:
    instance_id = await bench.rent(await bench.offer())
    await bench.simulated.weather("server_error_after", route="DELETE /instances")
    with pytest.raises(market_errors.Ambiguous):
        await bench.market.release(instance_id)
    assert list(await bench.market.instances()) == []


@card("MC-05", "a slow answer past the deadline is doubt for an order and ignorance for a question, in simulated time")
async def slow_answers(bench: Bench) -> None:
    offer = await bench.offer()
    await bench.simulated.weather("slow", delay=45.0)
    with pytest.raises(market_errors.Ambiguous):
        await bench.rent(offer)
    with pytest.raises(market_errors.Unavailable):
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
        with pytest.raises(market_errors.Throttled) as caught:
            await bench.rent(offer)
        wait = timedelta(seconds=float(fields.get("retry_after", bench.penalty)))
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


@card("MC-08", "an empty account is distinguished from every other refusal", credit=0.0)
async def no_credit(bench: Bench) -> None:
    with pytest.raises(market_errors.OutOfFunds):
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
        with pytest.raises(market_errors.Unauthorized):
            await call
