"""Network volumes over REST v2: list, create, read, change, delete, and their bill."""

from typing import Any

import msgspec

from agent.simulator.api_calls import Reply
from agent.simulator.runpod import places
from agent.simulator.runpod.http import calls, rest_billing, rest_bodies
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.network_volumes import STANDARD, NetworkVolume


def show_volumes(surface: Surface, _: Call) -> Reply:
    """Show every volume."""
    return calls.answer({"networkVolumes": [_view(volume) for volume in surface.world.volumes.all()]})


def create_volume(surface: Surface, call: Call) -> Reply:
    """Make a volume."""
    try:
        body = rest_bodies.read(call.body, rest_bodies.CreateVolume)
    except msgspec.ValidationError as error:
        return calls.problem(422, "Request validation failed.", str(error))
    if body.dataCenter not in places.BY_ID:
        return calls.problem(400, f"Unknown data center {body.dataCenter}.")
    return calls.answer(_view(surface.world.volumes.create(body.name, body.size, body.dataCenter)), 201)


def show_volume(surface: Surface, _: Call, volume_id: str) -> Reply:
    """Show one volume."""
    volume = surface.world.volumes.get(volume_id)
    return _missing(volume_id) if volume is None else calls.answer(_view(volume))


def change_volume(surface: Surface, call: Call, volume_id: str) -> Reply:
    """Rename a volume, or make it larger."""
    volume = surface.world.volumes.get(volume_id)
    if volume is None:
        return _missing(volume_id)
    try:
        body = rest_bodies.read(call.body, rest_bodies.ChangeVolume)
    except msgspec.ValidationError as error:
        return calls.problem(422, "Request validation failed.", str(error))
    if body.size is not None and body.size < volume.size_gb:
        return calls.problem(400, "The size of a network volume cannot be reduced.")
    if body.size is not None:
        surface.world.volumes.resize(volume, body.size)
    volume.name = body.name or volume.name
    return calls.answer(_view(volume))


def delete_volume(surface: Surface, _: Call, volume_id: str) -> Reply:
    """Delete a volume. Assumed: the market refuses to delete one that a pod uses."""
    world = surface.world
    if world.volumes.get(volume_id) is None:
        return _missing(volume_id)
    if any(pod.terms.network_volume == volume_id for pod in world.live_contracts()):
        return calls.problem(409, "The network volume is attached to a pod.")
    world.volumes.delete(volume_id)
    return calls.nothing()


def show_bill(surface: Surface, call: Call) -> Reply:
    """Show the cost of each volume per bucket."""
    try:
        since, until, size = rest_billing.window(call)
    except ValueError as error:
        return calls.problem(400, str(error))
    wanted = call.query.get("networkVolumeId")
    sums: dict[tuple[float, str], float] = {}
    for charge in surface.world.volumes.charges():
        # A charge belongs to the hour that it ends.
        start = rest_billing.bucket(charge.until - 1.0, size)
        if wanted in (None, charge.volume_id) and since <= start < until:
            sums[start, charge.volume_id] = sums.get((start, charge.volume_id), 0.0) + charge.amount
    records = [
        {
            "startTime": calls.stamp(start),
            "endTime": calls.stamp(rest_billing.bucket_end(start, size)),
            "networkVolumeId": volume_id,
            **_amounts(amount),
        }
        for (start, volume_id), amount in sorted(sums.items())
    ]
    query = {"startTime": calls.stamp(since), "endTime": calls.stamp(until), "bucketSize": size}
    metadata: dict[str, Any] = {
        "query": {**query, "networkVolumeId": wanted},
        "recordCount": len(records),
        "uniqueNetworkVolumeCount": len({volume_id for _, volume_id in sums}),
        "totals": _amounts(sum(sums.values())),
    }
    return calls.answer({"records": records, "metadata": metadata})


def _amounts(dollars: float) -> dict[str, float]:
    return {"totalAmount": dollars, "standardAmount": dollars, "highPerformanceAmount": 0.0}


def _view(volume: NetworkVolume) -> dict[str, Any]:
    return {
        "id": volume.volume_id,
        "name": volume.name,
        "size": volume.size_gb,
        "dataCenter": volume.center_id,
        "type": STANDARD,
    }


def _missing(volume_id: str) -> Reply:
    return calls.problem(404, f"Network volume {volume_id} not found.")
