"""Every route of the simulated Mithril, held against the vendor's OpenAPI document; it may not be copied into here."""

import pytest

from agent.simulator.mithril.http import routes
from tests.support import mithril_schema
from tests.support.auctions import A100, Auctions

pytestmark = pytest.mark.skipif(
    not mithril_schema.FILE.exists(),
    reason="GPUBID_RECORDED names no folder beside the vendor's OpenAPI document: no answer was held against it",
)


async def test_every_route_answers_as_the_document_says(auctions: Auctions) -> None:
    mithril_schema.SEEN.clear()
    project = auctions.world.project
    key = {"project": project, "name": "laptop", "public_key": "ssh-ed25519 AAAA me"}
    key_fid = (await auctions.call("POST", "/v2/ssh-keys", key)).body["fid"]
    disk = {"name": "data", "project": project, "disk_interface": "File", "region": A100[1], "size_gb": 10}
    disk_fid = (await auctions.call("POST", "/v2/volumes", disk)).body["fid"]
    fid = await auctions.placed(launch_specification={"volumes": [disk_fid], "ssh_keys": [key_fid]})
    await auctions.advance(600)
    instance = (await auctions.instances())[0]["fid"]
    for path in (
        "me",
        "projects",
        "instance-types",
        "cpu/instance-types",
        "spot/availability",
        "spot/bids",
        f"spot/bids/{fid}/status",
    ):
        await auctions.get(f"/v2/{path}")
    for path in (
        "volumes",
        "ssh-keys",
        "quotas",
        "reservation",
        "instances/status/history",
        "instances/pricing/history",
    ):
        await auctions.get(f"/v2/{path}", project=project)
    await auctions.get(f"/v2/instances/{instance}/status")
    await auctions.get("/v2/pricing/history", num_samples="5")
    await auctions.prices()
    await auctions.change(fid, paused=True)
    await auctions.change(fid, volumes=[], limit_price="$3.00")
    assert (await auctions.change(fid, limit_price="x")).status == 422
    await auctions.get(f"/v2/spot/bids/{fid}/history")
    await auctions.show(fid)
    await auctions.call("PATCH", f"/v2/volumes/{disk_fid}", {"name": "other"})
    await auctions.call("PATCH", f"/v2/ssh-keys/{key_fid}", {"required": True})
    assert (await auctions.call("PATCH", "/v2/instances", {})).status == 501
    assert (await auctions.call("POST", f"/v2/instances/{instance}/restart")).status == 501
    for path in (f"volumes/{disk_fid}", f"ssh-keys/{key_fid}", f"spot/bids/{fid}"):
        assert (await auctions.call("DELETE", f"/v2/{path}")).status == 204
    seen = {_plain(f"{method} {path}") for method, path, _ in mithril_schema.SEEN}
    assert [f"{method} {path}" for method, path, _ in routes.ROUTES if f"{method} {path}" not in seen] == []


def _plain(name: str) -> str:
    """Return a route of the document with its parameters as the simulator writes them."""
    return "/".join("{}" if part.startswith("{") else part for part in name.split("/"))
