"""The routes of volumes."""

import re
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.mithril.belongings import INTERFACES, MOST_GB, Volume
from agent.simulator.mithril.http import bid_bodies, calls
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.mithril.model import Refused

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,62}[a-z0-9])?")


def listed(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/volumes."""
    surface.project(call, call.required("project"))
    region, with_deleted = call.query.get("region"), call.query.get("include_deleted", "").lower() == "true"
    rows = [
        _view(surface, volume)
        for volume in surface.world.belongings.volumes.values()
        if region in (None, "", volume.region) and (with_deleted or volume.deleted is None)
    ]
    return calls.ok([] if "empty_list" in call.struck else rows)


def make(surface: Surface, call: Call) -> Reply:
    """Answer POST /v2/volumes."""
    body = bid_bodies.fields(call)
    name, interface = _name(body), bid_bodies.text(body, "disk_interface")
    if interface not in INTERFACES:
        raise Refused(422, "Input should be 'Block' or 'File'", ("body", "disk_interface"))
    region, size_gb = bid_bodies.text(body, "region"), bid_bodies.whole(body, "size_gb", 1, MOST_GB)
    surface.project(call, bid_bodies.text(body, "project"))
    volume = surface.world.belongings.make_volume(name, region, size_gb, interface, surface.world.now)
    return calls.ok(_view(surface, volume), 201)


def rename(surface: Surface, call: Call, fid: str) -> Reply:
    """Answer PATCH /v2/volumes/{volume_fid}."""
    volume = surface.world.belongings.volume(fid)
    volume.name = _name(bid_bodies.fields(call))
    return calls.ok(_view(surface, volume))


def delete(surface: Surface, _call: Call, fid: str) -> Reply:
    """Answer DELETE /v2/volumes/{volume_fid}."""
    surface.world.desk.delete_volume(fid)
    return Reply(b"", 204)


def _name(body: Any) -> str:  # noqa: ANN401 - a JSON object
    name = bid_bodies.text(body, "name")
    if _NAME.fullmatch(name) is None:
        raise Refused(422, "String should match pattern '^[a-z]([-a-z0-9]*[a-z0-9])?$'", ("body", "name"))
    return name


def _view(surface: Surface, volume: Volume) -> dict[str, Any]:
    users = [bid for bid in surface.world.live_contracts() if volume.fid in bid.volumes]
    return {
        "fid": volume.fid,
        "name": volume.name,
        "region": volume.region,
        "created_at": calls.stamp(volume.created),
        "deleted_at": calls.stamp_or_none(volume.deleted),
        "capacity_gb": volume.size_gb,
        "project": surface.world.project,
        "interface": volume.interface,
        "bids": [bid.fid for bid in users],
        "reservations": [],
        "attachments": {vm.fid: "attached" for bid in users if bid.holds_gpu for vm in bid.live_vms},
    }
