"""Cards of searches."""

from datetime import UTC, datetime

import pytest

from agent.domain.market import gpu
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.port import Terms
from tests.markets.bench import DISK_GB, Bench
from tests.markets.card import card
from tests.markets.scene import LABEL


@card("MC-18", "a search is a sample: offers that it leaves out can still exist", daily_rows=100_000)
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
    with pytest.raises(market_errors.Malformed, match="gpu_rm"):
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

    with pytest.raises(market_errors.Throttled) as caught:
        await ask_on()
    assert caught.value.until == datetime(2026, 11, 6, tzinfo=UTC)
    assert (await bench.simulated.truth())["search_rows"] <= 40


@card("MC-25", "the market's daily quota closes searches until midnight and nothing else")
async def quota(bench: Bench) -> None:
    await bench.simulated.weather("search_quota")
    for _ in range(2):
        with pytest.raises(market_errors.Throttled) as caught:
            await bench.offers()
        assert caught.value.until == datetime(2026, 11, 6, tzinfo=UTC)
    assert await bench.calls("POST", "/bundles/") == 1
    assert list(await bench.market.instances()) == []


@card("MC-26", "an offer that is taken is refused as gone, whatever the status")
async def taken_offer(bench: Bench) -> None:
    offer = await bench.offer()
    await bench.on_demand_rival(offer)
    with pytest.raises(market_errors.Rejected) as caught:
        await bench.market.rent(offer, Terms(Tenure.ON_DEMAND, None, DISK_GB, "x"), LABEL)
    assert caught.value.reason == bench.taken
    assert await bench.contracts() == []
