"""The vendor's own command line, PyPI `vastai` 1.9.1, works against the simulator unmodified.

It ends with 0 after a refusal, so its output and the truth are asserted, never its code alone.
"""

import asyncio
import json
import pathlib
from typing import Any

import pytest

from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast.model import RentTerms
from agent.simulator.vast.world import World
from tests.support.market import STILL, Market
from tests.support.steered import Simulator
from tests.support.vendor import Vendor


@pytest.fixture
def vendor(market: Market, tmp_path: pathlib.Path) -> Vendor:
    return Vendor(market.simulator.vast_url, tmp_path)


async def the_contract(market: Market) -> dict[str, Any]:
    (contract,) = [row for row in (await market.truth())["contracts"] if row["ended"] is None]
    return dict(contract)


async def test_search(market: Market, vendor: Vendor) -> None:
    query = "num_gpus=1 gpu_frac=1 dph<2 reliability>0.5"
    bids, asks, table = await asyncio.gather(
        vendor.cli("search", "offers", query, "--type", "bid", "-o", "dph+", "--limit", "3", "--raw"),
        vendor.cli("search", "offers", query, "--type", "on-demand", "-o", "dph+", "--limit", "3", "--raw"),
        vendor.cli("search", "offers", query, "--type", "bid", "-o", "dph-", "--storage", "30"),
    )
    bid_rows, ask_rows = json.loads(bids.out), json.loads(asks.out)
    for rows in (bid_rows, ask_rows):
        prices = [row["dph_total"] for row in rows]
        assert len(prices) == 3
        assert prices == sorted(prices)
        assert all(row["num_gpus"] == 1 and row["gpu_frac"] == 1.0 for row in rows)
    assert all(row["dph_base"] == row["min_bid"] for row in bid_rows)
    expected = {row["id"] for row in await market.offers(num_gpus={"eq": 1}, gpu_frac={"eq": 1.0})}
    assert {row["id"] for row in bid_rows} <= expected
    assert str(bid_rows[0]["id"]) in table.out
    assert table.err == ""


async def test_a_life_from_create_to_destroy(market: Market, vendor: Vendor) -> None:
    offer = await market.cheapest(gpu_frac={"eq": 1.0}, num_gpus={"eq": 1})
    bid = round(offer["min_bid"] * 1.2, 4)
    made = await vendor.cli(
        "create", "instance", str(offer["id"]), "--image", "ubuntu:22.04", "--disk", "16", "--bid_price", str(bid),
        "--label", "exp1", "--env", "-p 8080:8080 -e A=b", "--onstart-cmd", "echo hi", "--ssh", "--direct",
    )  # fmt: skip
    contract = await the_contract(market)
    number = str(contract["id"])
    assert f"'new_contract': {number}" in made.out
    assert (contract["is_bid"], contract["bid"], contract["label"]) == (True, pytest.approx(bid), "exp1")
    record = await market.running(contract["id"])
    assert record["extra_env"] == [["-p 8080:8080", "1"], ["A", "b"]]

    many, one, raw, user = await asyncio.gather(
        vendor.cli("show", "instances"),
        vendor.cli("show", "instance", number),
        vendor.cli("show", "instances", "--raw"),
        vendor.cli("show", "user", "--raw"),
    )
    assert "running" in many.out
    assert "exp1" in many.out
    assert number in one.out
    assert [row["id"] for row in json.loads(raw.out)] == [contract["id"]]
    assert json.loads(user.out)["credit"] == pytest.approx((await market.truth())["credit"])

    logs = await vendor.cli("logs", number)
    assert "ubuntu" in logs.out
    bid_change = await vendor.cli("change", "bid", number, "--price", str(round(bid * 1.5, 4)))
    assert "bid price changed" in bid_change.out
    assert (await the_contract(market))["bid"] == pytest.approx(round(bid * 1.5, 4))
    labelled = await vendor.cli("label", "instance", number, "exp2")
    assert "exp2" in labelled.out
    assert (await the_contract(market))["label"] == "exp2"
    stopped = await vendor.cli("stop", "instance", number)
    assert "stopping instance" in stopped.out
    assert (await the_contract(market))["status"] == "stopped"
    started = await vendor.cli("start", "instance", number)
    assert "starting instance" in started.out
    await market.running(contract["id"])
    destroyed = await vendor.cli("destroy", "instance", number, "-y")
    assert "destroying instance" in destroyed.out
    assert (await market.truth())["contracts"][0]["ended"] is not None
    assert (await market.truth())["billing_now"] == []
    gone = await vendor.cli("show", "instance", number)
    assert "not found" in gone.out + gone.err


async def test_what_goes_wrong(market: Market, vendor: Vendor) -> None:
    offer = await market.cheapest(gpu_frac={"eq": 1.0}, num_gpus={"eq": 1})
    rent = ("create", "instance", str(offer["id"]), "--image", "ubuntu:22.04", "--disk", "16")
    underbid = await vendor.cli(*rent, "--bid_price", str(round(offer["min_bid"] * 0.5, 4)))
    contract = await the_contract(market)
    assert "Started." in underbid.out
    assert "'success': False" in underbid.out
    assert contract["status"] == "stopped"
    await market.control("POST", "/rivals", {"machine_id": offer["machine_id"], "on_demand": True})
    refused, taken, unknown, stranger = await asyncio.gather(
        vendor.cli("start", "instance", str(contract["id"])),
        vendor.cli(*rent),
        vendor.cli("destroy", "instance", "5", "-y"),
        Vendor(vendor.url, vendor.home / "stranger", "stolen").cli("show", "user"),
    )
    assert refused.code == taken.code == unknown.code == 0
    assert "state change queued" in refused.out + refused.err
    assert "410" in taken.err
    assert "Instance with that ID does not exist" in unknown.err
    assert "Invalid user key" in stranger.err
    assert len((await market.truth())["contracts"]) == 1


async def test_money(tmp_path: pathlib.Path) -> None:
    """The program asks for the last seven real days, so this market's time is the real present."""
    clock = ScaledClock(speed=0.0)
    world = World(STILL, seed=7, start=clock.time() - 7_200.0, hosts=20)
    offer = next(slice_ for slice_ in world.listed() if slice_.num_gpus and world.is_rentable(slice_))
    contract = world.create(offer.offer_id, RentTerms(50.0, "ubuntu:22.04", "job"), bid=None)
    async with Simulator(world, clock) as simulator:
        local = Vendor(simulator.vast_url, tmp_path)
        charges, invoices = await asyncio.gather(
            local.cli("show", "invoices-v1", "--charges", "--raw"),
            local.cli("show", "invoices-v1", "--invoices", "--raw"),
        )
    (row,) = json.loads(charges.out)["results"]
    assert row["source"] == f"instance-{contract.contract_id}"
    assert row["amount"] == pytest.approx(world.charged_total(), abs=0.001)
    (paid,) = json.loads(invoices.out)["results"]
    assert paid["amount"] == -world.climate.credit


async def test_scheduled_jobs_and_templates(vendor: Vendor) -> None:
    jobs, templates = await asyncio.gather(
        vendor.cli("show", "scheduled-jobs", "--raw"), vendor.cli("search", "templates", "name=mine", "--raw")
    )
    assert (json.loads(jobs.out), jobs.code, jobs.err) == ([], 0, "")
    assert (json.loads(templates.out), templates.code, templates.err) == ([], 0, "")
