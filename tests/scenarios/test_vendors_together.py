"""Both vendors' own programs at work on one simulator while the agent trades on it: nobody is in another's way."""

import asyncio
import dataclasses
import json
from pathlib import Path

import pytest

from agent.app import App
from agent.cli.rehearsing.rehearsal import START
from agent.cli.shared import session
from agent.clock import SteppedClock
from agent.outside import Outside
from agent.simulator import climate_files
from agent.simulator.runpod.model import Pod
from agent.simulator.vast.world import World
from tests.support import sdk
from tests.support.steered import Simulator
from tests.support.vendor import Vendor

CONFIG = """\
[markets.vast]
simulated = "calm"
[markets.runpod]
simulated = "calm"

[limits]
max_price_per_instance_hour = 0.80
max_fleet_per_hour = 3.00
max_per_day = 30.00
max_per_month = 500.00
max_instances = 6

[workloads.bids]
image = "ubuntu:22.04"
gpu = ["RTX 4090"]
max_price = 0.75
markets = ["vast"]
strategy = "patient"

[workloads.pods]
image = "ubuntu:22.04"
gpu = ["RTX 4090"]
max_price = 0.75
markets = ["runpod"]
strategy = "ondemand"
"""

PODS = """
import json
import runpod
runpod.api_key = "simulated-key"
made = runpod.create_pod("sdk1", "ubuntu:22.04", "NVIDIA RTX A4000", cloud_type="SECURE", container_disk_in_gb=10)
said = {"listed": [pod["id"] for pod in runpod.get_pods()], "stopped": runpod.stop_pod(made["id"])}
said["resumed"] = runpod.resume_pod(made["id"], 1)
runpod.terminate_pod(made["id"])
print(json.dumps(said))
"""


@pytest.mark.skipif(not sdk.PYTHON.exists(), reason="RunPod's package is not here (make sdk)")
async def test_both_sessions_while_the_agent_trades(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(CONFIG, encoding="utf-8")
    config, tuned = session.read(tmp_path / "agent.toml")
    clock = SteppedClock(START)
    world = World(climate_files.named("calm"), seed=7, start=clock.time())
    async with Simulator(world, clock, seed=7) as simulator:
        urls = {market.name: simulator.url(market.name) for market in config.markets}
        outside = Outside(clock, lambda _: "simulated-key", urls)
        app = await App.open(dataclasses.replace(config, ledger=tmp_path / "ledger.sqlite"), tuned, outside)
        try:
            trading = asyncio.create_task(trade(app, clock))
            pods, listed = await asyncio.gather(
                sdk.run(simulator.runpod_url, tmp_path, PODS), rent(Vendor(simulator.vast_url, tmp_path))
            )
            trading.cancel()
            await asyncio.gather(trading, return_exceptions=True)
            leases = await (await app.ledger.reader()).leases(limit=100)
        finally:
            await app.close()
        theirs = [pod for pod in simulator.pods.pods.values() if not ours(pod)]
        told = simulator.control.truth()
    assert (pods["stopped"]["desiredStatus"], pods["resumed"]["desiredStatus"]) == ("EXITED", "RUNNING")
    assert [pod.end_cause for pod in theirs] == ["destroyed"]
    (machine,) = [row for row in told["contracts"] if row["label"] == "cli1"]
    assert machine["end_cause"] == "destroyed"
    assert str(machine["id"]) in listed
    assert {lease.market for lease in leases if lease.is_open} == {"vast", "runpod"}


def ours(pod: Pod) -> bool:
    return (pod.label or "").startswith("gpubid:")


async def trade(app: App, clock: SteppedClock) -> None:
    while True:
        await app.cycle()
        clock.advance(5.0)
        await asyncio.sleep(0.05)


async def rent(vendor: Vendor) -> str:
    """Rent, list and destroy with Vast.ai's command line; give the list."""
    query = "num_gpus=1 gpu_frac=1 gpu_name=RTX_3090"
    offers = json.loads((await vendor.cli("search", "offers", query, "--type", "bid", "--raw")).out)
    bid = str(round(offers[0]["min_bid"] * 1.3, 4))
    terms = ("--image", "ubuntu:22.04", "--disk", "16", "--bid_price", bid, "--label", "cli1")
    await vendor.cli("create", "instance", str(offers[0]["id"]), *terms)
    rows = json.loads((await vendor.cli("show", "instances", "--raw")).out)
    (number,) = [row["id"] for row in rows if row["label"] == "cli1"]
    await vendor.cli("destroy", "instance", str(number), "-y")
    return " ".join(str(row["id"]) for row in rows)
