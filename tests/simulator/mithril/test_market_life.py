"""The simulated Mithril as time goes on: rivals, reservations, preemption, machines, volumes, keys and the bill."""

import asyncio
import dataclasses
import json
import statistics
from typing import Any

import pytest

from agent.simulator import climate_files
from agent.simulator.climate import Climate, Strike
from agent.simulator.mithril import assumed_figures, truth
from agent.simulator.mithril.climate_table import Mithril
from agent.simulator.mithril.model import Terms
from agent.simulator.mithril.world import World
from tests.support.auctions import A100, H100, Auctions, running_auctions
from tests.support.market import START, STILL

DAY = 86_400.0
POOL = "auc_simulated00001"
SCRIPT = """#!/bin/bash
export SIM_READY_AFTER='5'
exec "$docker" --config /etc/x run --detach --gpus all --env SIM_READY_AFTER \\
  --publish 18733:8000 --entrypoint bash ubuntu:22.04 -c 'sleep 9; docker run other'
"""


async def displaced(auctions: Auctions) -> tuple[str, int]:
    """Let a bid run, and a rival for the whole pool win the next auction."""
    fid = await auctions.placed("$2.00")
    await auctions.advance(600)
    answer = await auctions.control("POST", "/rivals", {"pool": POOL, "quantity": 26, "bid": 99.0})
    await auctions.advance(120)
    return fid, int(answer.body["id"])


async def test_a_loser_has_five_minutes_and_keeps_its_boot_disk_and_comes_back(auctions: Auctions) -> None:
    fid, rival = await displaced(auctions)
    assert (await auctions.show(fid))["status"] == "Preempting"
    (first,) = await auctions.instances()
    assert first["status"] == "STATUS_PREEMPTING"
    await auctions.advance(299)
    assert (await auctions.show(fid))["status"] == "Preempting"
    await auctions.advance(1)
    assert (await auctions.show(fid))["status"] == "Open"
    assert [row["status"] for row in await auctions.instances()] == ["STATUS_PREEMPTED"]
    assert (await auctions.truth())["billing_now"] == []
    assert (await auctions.control("DELETE", f"/rivals/{rival}")).status == 200
    await auctions.advance(600)
    second = (await auctions.instances(status_in="STATUS_RUNNING"))[0]["fid"]
    assert (await auctions.show(fid))["instances"] == [first["fid"], second]
    events = (await auctions.get(f"/v2/spot/bids/{fid}/history"))["events"]
    assert [event["event_type"] for event in events] == ["Placed", "Allocated", "Preempted", "Allocated"]


@pytest.mark.parametrize(("bills", "seconds"), [(True, 900.0), (False, 600.0)])
async def test_the_bill_is_the_truth_and_the_climate_says_whether_notice_is_billed(bills: bool, seconds: float) -> None:
    quiet = STILL.having(Mithril(bills_notice=bills))
    async with running_auctions(quiet) as auctions:
        await displaced(auctions)
        await auctions.advance(600)
        (row,) = (await auctions.get("/v2/instances/pricing/history", project=auctions.world.project))["instances"]
        (period,) = row["events"]
        (bid,) = (await auctions.truth())["contracts"]
        assert period["price_cents"] == 100
        assert bid["charged"]["gpu"] == pytest.approx(seconds / 3600.0)
        ((cents, start, end),) = bid["instances"][0]["prices"]
        assert cents * (end - start) / 360_000.0 == pytest.approx(bid["charged"]["gpu"])
        billed = auctions.simulator.sides["mithril"].charges(START, START + 3600.0)
        assert sum(charge.dollars for charge in billed) == pytest.approx(bid["charged"]["gpu"])


async def test_a_new_price_is_a_new_period_of_the_bill(auctions: Auctions) -> None:
    await auctions.placed("$2.00")
    await auctions.advance(600)
    await auctions.control("POST", "/rivals", {"pool": POOL, "quantity": 3, "bid": 1.01})
    await auctions.advance(240)
    (row,) = (await auctions.get("/v2/instances/pricing/history", project=auctions.world.project))["instances"]
    assert [event["price_cents"] for event in row["events"]] == [100, 101]
    assert row["events"][0]["end_time"] == row["events"][1]["start_time"]
    assert row["events"][1]["end_time"] is None
    (series,) = (await auctions.get("/v2/pricing/history", instance_types=A100[0], region=A100[1], num_samples="-1"))[
        "series"
    ]
    assert series["spot_prices"] == ["$1.00", "$1.01"]


async def test_a_reservation_takes_capacity_and_gives_it_back(auctions: Auctions) -> None:
    body = {"pool": POOL, "quantity": 3, "seconds": 3600.0}
    assert (await auctions.control("POST", "/reservations", body)).body == body
    assert (await auctions.prices())["available_capacity"] == 0
    fid = await auctions.placed("$1.00")
    await auctions.advance(600)
    assert (await auctions.show(fid))["status"] == "Open"
    await auctions.advance(3600)
    assert (await auctions.show(fid))["status"] == "Allocated"
    assert (await auctions.control("POST", "/reservations", {**body, "pool": "auc_none"})).status == 400


async def test_a_telling_pool_names_the_price_to_win() -> None:
    telling = STILL.having(Mithril(tells_win_price=1.0))
    async with running_auctions(telling) as auctions:
        told = await auctions.prices(H100)
        assert told["dynamic_win_price_cents"] == told["lowest_allocated_bid_cents"] + 1
        assert (await auctions.prices(H100, instance_quantity="10"))["dynamic_win_price_cents"] is None
        assert (await auctions.prices(A100))["dynamic_win_price_cents"] == 100
        fid = await auctions.placed(f"${told['dynamic_win_price_cents'] / 100:.2f}", H100)
        await auctions.advance(600)
        assert (await auctions.show(fid))["status"] == "Allocated"


async def test_the_scripts_container_runs_and_its_port_opens_on_the_machines_own_address(auctions: Auctions) -> None:
    launch = {"volumes": [], "ssh_keys": [], "startup_script": SCRIPT}
    fid = await auctions.placed(launch_specification=launch)
    await auctions.advance(600)
    assert (await auctions.truth())["contracts"][0]["container"] == "running"
    (instance,) = await auctions.instances()
    reader, writer = await asyncio.open_connection(instance["ssh_destination"], 18733)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    assert (await reader.read()).endswith(b"ok\n")
    writer.close()
    await writer.wait_closed()
    await auctions.change(fid, paused=True)
    await auctions.advance(1)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(instance["ssh_destination"], 18733)


async def test_volumes_bill_until_they_are_deleted_and_change_on_a_paused_bid_alone(auctions: Auctions) -> None:
    project = auctions.world.project
    body = {"name": "data", "project": project, "disk_interface": "Block", "region": A100[1], "size_gb": 720}
    volume = (await auctions.call("POST", "/v2/volumes", body)).body["fid"]
    assert (await auctions.call("POST", "/v2/volumes", {**body, "name": "Data"})).status == 422
    await auctions.advance(3600)
    assert (await auctions.truth())["charged_total"] == pytest.approx(assumed_figures.VOLUME)
    fid = await auctions.placed()
    assert (await auctions.change(fid, volumes=[volume])).status == 400
    await auctions.change(fid, paused=True)
    assert (await auctions.change(fid, volumes=[volume])).body["launch_specification"]["volumes"] == [volume]
    assert (await auctions.call("DELETE", f"/v2/volumes/{volume}")).status == 400
    assert (await auctions.get("/v2/volumes", project=project))[0]["bids"] == [fid]
    await auctions.change(fid, volumes=[])
    assert (await auctions.call("DELETE", f"/v2/volumes/{volume}")).status == 204
    assert await auctions.get("/v2/volumes", project=project) == []
    elsewhere = {"volumes": [volume], "ssh_keys": []}
    assert (await auctions.place(name="b", launch_specification=elsewhere)).status == 404


async def test_keys_are_registered_by_name_and_quotas_count_live_bids(auctions: Auctions) -> None:
    project = auctions.world.project
    body = {"project": project, "name": "laptop", "public_key": "ssh-ed25519 AAAA me"}
    made = (await auctions.call("POST", "/v2/ssh-keys", body)).body
    assert (await auctions.call("POST", "/v2/ssh-keys", body)).status == 400
    assert (await auctions.call("PATCH", f"/v2/ssh-keys/{made['fid']}", {"required": True})).body["required"] is True
    launch = {"volumes": [], "ssh_keys": [made["fid"]]}
    assert (await auctions.place(launch_specification=launch)).status == 201
    assert (await auctions.call("DELETE", f"/v2/ssh-keys/{made['fid']}")).status == 204
    assert await auctions.get("/v2/ssh-keys", project=project) == []
    used = {row["instance_type"]: row["used_quantity"] for row in await auctions.get("/v2/quotas", project=project)}
    assert (used[A100[0]], used[H100[0]]) == (1, 0)
    assert (await auctions.place(name="many", instance_quantity=32)).body == {
        "detail": "Spot quota exceeded for a100-80gb.sxm.1x"
    }


def played(market: Climate, seed: int, *stops: float) -> Any:
    world = World(market, seed=seed, start=START)
    for stop in stops:
        world.advance_to(START + stop)
    return json.loads(json.dumps(truth.as_json(world)))


def test_the_same_seed_plays_the_same_market_however_time_is_cut() -> None:
    market = climate_files.named("recorded")
    whole = played(market, 3, DAY)
    assert whole == played(market, 3, 1.0, 130.0, 7_000.0, DAY)
    assert whole["pools"] != played(market, 4, DAY)["pools"]


def test_prices_and_free_capacity_are_like_the_three_recorded_ones() -> None:
    world = World(climate_files.named("recorded"), seed=7, start=START)
    ratios: list[float] = []
    full = 0
    for hour in range(24, 24 * 8, 6):
        world.advance_to(START + hour * 3600.0)
        ratios += [pool.spot_cents / pool.pool.reserved_cents for pool in world.pools.values()]
        full += sum(pool.free == 0 for pool in world.pools.values())
    # 95 % interval of 2 full pools of 3, and the range of the recorded price over the reserved price.
    assert 0.09 < full / len(ratios) < 0.99
    deciles = statistics.quantiles(ratios, n=20)
    recorded = sorted(row["spot"] / row["reserved"] for row in assumed_figures.PRICES.values())
    assert deciles[0] < recorded[0]
    assert deciles[4] < recorded[1] < deciles[14]
    assert recorded[2] < max(ratios)


def hours_held(name: str) -> float:
    """Return how long bids at half of the reserved price, one in each pool, hold their instances in a week."""
    world = World(climate_files.named(name), seed=5, start=START)
    for number, pool in enumerate(world.pools.values()):
        limit = pool.pool.reserved_cents // 2
        world.desk.place(Terms(f"bid-{number}", world.project, pool.pool, limit, 1))
    world.advance_to(START + 7 * DAY)
    periods = [period for bid in world.bids.values() for vm in bid.vms for period in vm.prices]
    return sum((period.end or world.now) - period.start for period in periods) / 3600.0


def test_a_bid_holds_its_machine_less_long_where_pools_are_fought_over() -> None:
    calm, usual, hard = (hours_held(name) for name in ("calm", "recorded", "second_price"))
    assert calm > 1.2 * usual > 1.44 * hard


async def test_a_climates_strikes_hit_a_machine_of_ours() -> None:
    strikes = Strike(1_200.0, "host_offline", seconds=600.0), Strike(3_600.0, "host_gone")
    async with running_auctions(dataclasses.replace(STILL, strikes=strikes)) as auctions:
        fid = await auctions.placed()
        await auctions.advance(1_201)
        assert auctions.world.bids[fid].is_offline
        await auctions.advance(600)
        assert not auctions.world.bids[fid].is_offline
        await auctions.advance(1_800)
        assert [row["status"] for row in await auctions.instances()] == ["STATUS_ERROR"]
