"""The vendor's own clients from PyPI work against the simulator unmodified, in an environment of their own.

`make mithril-clients` makes it. `flow` (flow-compute 3.28.2) places, changes, lists and cancels a bid by its command
line. The bindings of mithril-client 0.1.0rc3 make every call that they have for what is simulated. The limits are:

- `ml`, the command line of mithril-client, is SkyPilot's and needs skypilot-mithril, which is not installed.
- The bindings have no call for what an instance paid and for the history of its states.
- `flow ssh`, `logs` and `dev` need a machine that answers ssh; `flow run` sends a script that nobody runs.
- `flow reserve`, `k8s`, `vm` and `--placement auto` need parts of the market that are not simulated.
"""

import asyncio
import json
import os
import pathlib
from typing import Any

import pytest

from tests.support.auctions import A100, Auctions

FOLDER = pathlib.Path(__file__).parents[3] / ".venv-mithril" / "bin"

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not FOLDER.exists(), reason="Mithril's clients are not here (make mithril-clients)"),
]

BINDINGS = """
import importlib, json, os
from mithril.api.bindings import AuthenticatedClient
from mithril.api.bindings import models as m

client = AuthenticatedClient(base_url=os.environ["MITHRIL_API_URL"], token=os.environ["MITHRIL_API_KEY"])

def ask(module, *args, **fields):
    called = importlib.import_module(f"mithril.api.bindings.api.{module}")
    return called.sync(*args, client=client, **fields)

project = ask("projects.get_projects_v2_projects_get")[0].fid
kind, region = json.loads(os.environ["POOL"])
said = {
    "me": ask("profile.get_me_v2_me_get").email,
    "types": len(ask("instance_types.get_instance_types_v2_instance_types_get")),
    "pools": len(ask("spot.get_auctions_v2_spot_availability_get")),
    "price": ask("pricing.get_current_prices_v2_v2_pricing_current_get", instance_type=kind, region=region).to_dict(),
    "series": len(ask("pricing.get_historical_prices_v2_v2_pricing_history_get", instance_types=kind).series),
    "quotas": len(ask("quotas.get_quotas_v2_quotas_get", project=project)),
    "reservations": ask("reservations.get_reservations_v2_reservation_get", project=project).data,
}
body = m.CreateSshKeyRequest(project=project, name="laptop", public_key="ssh-ed25519 AAAA me")
key = ask("ssh_keys.create_ssh_key_v2_ssh_keys_post", body=body)
said["keys"] = [one.name for one in ask("ssh_keys.get_ssh_keys_v2_ssh_keys_get", project=project)]
launch = m.LaunchSpecificationModel(volumes=[], ssh_keys=[key.fid])
body = m.CreateBidRequest(project=project, region=region, instance_type=kind, limit_price="$25.60", instance_quantity=1,
    name="one", launch_specification=launch)
bid = ask("spot.create_bid_v2_spot_bids_post", body=body).fid
said["named"] = [one.fid == bid for one in ask("spot.get_bids_v2_spot_bids_get", name="one").data]
patch = "spot.update_bid_v2_spot_bids_bid_fid_patch"
said["changed"] = ask(patch, bid, body=m.UpdateBidRequest(limit_price="$26.00")).limit_price
said["wrong"] = ask(patch, bid, body=m.UpdateBidRequest(limit_price="x")).detail[0].loc
said["paused"] = ask(patch, bid, body=m.UpdateBidRequest(paused=True)).status
said["status"] = ask("spot.get_bid_status_v2_spot_bids_bid_fid_status_get", bid).status
said["instances"] = ask("instances.get_instances_v2_instances_get", project=project).data
history = ask("spot.get_bid_history_v2_spot_bids_bid_fid_history_get", bid)
said["events"] = [one.event_type for one in history.events]
importlib.import_module("mithril.api.bindings.api.spot.cancel_bid_v2_spot_bids_bid_fid_delete").sync_detailed(
    bid, client=client)
said["ended"] = ask("spot.get_bid_v2_spot_bids_bid_fid_get", bid).status
print(json.dumps(said))
"""


async def run(auctions: Auctions, home: pathlib.Path, *command: str) -> Any:
    """Run one of the vendor's programs, which must succeed. Return the JSON that it prints."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "MITHRIL_API_URL": auctions.simulator.mithril_url,
        "MITHRIL_API_KEY": auctions.simulator.mithril.key,
        "MITHRIL_PROJECT": "default",
        "POOL": json.dumps(A100),
    }
    pipe = asyncio.subprocess.PIPE
    program, *words = command
    process = await asyncio.create_subprocess_exec(
        str(FOLDER / program), *words, env=environment, cwd=home, stdout=pipe, stderr=pipe
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, (out + err).decode()
    return json.loads(out.decode().splitlines()[-1])


async def test_the_bindings_make_every_call(auctions: Auctions, tmp_path: pathlib.Path) -> None:
    said = await run(auctions, tmp_path, "python", "-c", BINDINGS)
    assert (said["me"], said["types"], said["pools"], said["series"]) == ("renter@example.com", 9, 12, 2)
    assert (said["quotas"], said["reservations"], said["keys"]) == (10, [], ["laptop"])
    assert (said["price"]["spot_price_cents"], said["price"]["dynamic_win_price_cents"]) == (100, None)
    assert (said["named"], said["changed"], said["wrong"]) == ([True], "$26.00", ["body", "limit_price"])
    assert (said["paused"], said["status"], said["instances"], said["ended"]) == ("Paused", "Paused", [], "Terminated")
    assert said["events"] == ["Placed", "Limit Price Changed", "Paused"]


async def test_flow_places_changes_lists_and_cancels_a_bid(auctions: Auctions, tmp_path: pathlib.Path) -> None:
    pools = (await run(auctions, tmp_path, "flow", "availability", "--json"))["data"]["availability"]
    assert next(row["available_instances"] for row in pools if row["region"] == A100[1]) == 3
    order = ("run", "nvidia-smi", "-i", "1xa100", "-r", A100[1], "-m", "3", "--image", "ubuntu:22.04", "-n", "job")
    made = await run(
        auctions, tmp_path, "flow", *order, "--no-upload-code", "-y", "--json", "--wait-until", "submitted"
    )
    bid = made["data"]["task_id"]
    assert (await auctions.show(bid))["limit_price"] == "$3.00"
    await auctions.advance(600)
    (task,) = (await run(auctions, tmp_path, "flow", "status", "--json"))["data"]
    assert (task["task_id"], task["status"], task["market_price_per_hour"]) == (bid, "running", 1.0)
    await run(auctions, tmp_path, "flow", "bid", "update", bid, "4", "--json")
    assert (await auctions.show(bid))["limit_price"] == "$4.00"
    await run(auctions, tmp_path, "flow", "cancel", bid, "--yes", "--json")
    assert (await auctions.show(bid))["status"] == "Terminated"
    (row,) = (await run(auctions, tmp_path, "flow", "bid", "list", "--json"))["data"]["bids"] or [{}]
    assert row.get("status", "Terminated") == "Terminated"
