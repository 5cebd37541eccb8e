"""The bids: list, place, show, change, end, and their histories."""

from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.mithril.http import bid_bodies, calls, pages
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.mithril.model import Bid, Event, Happening, Refused, Status

STATUSES = tuple(status.value for status in Status)


def listed(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/spot/bids."""
    call.choice("sort_by", ("created_at", "status"))
    status, query = call.choice("status", STATUSES), call.query
    if query.get("project"):
        surface.project(call, query["project"])
    rows = [
        bid
        for bid in surface.listed(call)
        if query.get("instance_type") in (None, "", bid.pool.kind.fid)
        and query.get("region") in (None, "", bid.pool.region)
        and query.get("name") in (None, "", bid.label)
        and status in (None, bid.status.value)
    ]
    return pages.page(call, rows, lambda bid: bid.contract_id, lambda bid: view(surface, call, bid), "data")


def place(surface: Surface, call: Call) -> Reply:
    """Answer POST /v2/spot/bids."""
    terms = bid_bodies.terms(surface, call)
    if "sold_out" in call.struck:
        raise Refused(400, "Spot quota exceeded")
    return calls.ok(view(surface, call, surface.world.desk.place(terms)), 201)


def show(surface: Surface, call: Call, fid: str) -> Reply:
    """Answer GET /v2/spot/bids/{bid_fid}."""
    return calls.ok(view(surface, call, surface.bid(call, fid)))


def change(surface: Surface, call: Call, fid: str) -> Reply:
    """Answer PATCH /v2/spot/bids/{bid_fid}."""
    bid, body = surface.bid(call, fid), bid_bodies.fields(call)
    paused = body.get("paused")
    if paused is not None and not isinstance(paused, bool):
        raise Refused(422, "Input should be a valid boolean", ("body", "paused"))
    if body.get("limit_price") is not None:
        surface.world.desk.reprice(bid, bid_bodies.limit_cents(body))
    if body.get("volumes") is not None:
        surface.world.desk.attach(bid, bid_bodies.ids(body, "volumes"))
    if paused is not None:
        (surface.world.desk.pause if paused else surface.world.desk.resume)(bid)
    return calls.ok(view(surface, call, bid))


def end(surface: Surface, call: Call, fid: str) -> Reply:
    """Answer DELETE /v2/spot/bids/{bid_fid}."""
    surface.world.desk.terminate(surface.bid(call, fid))
    return Reply(b"", 204)


def status(surface: Surface, call: Call, fid: str) -> Reply:
    """Answer GET /v2/spot/bids/{bid_fid}/status."""
    return calls.ok({"bid_fid": fid, "status": _status(call, surface.bid(call, fid))})


def history(surface: Surface, call: Call, fid: str) -> Reply:
    """Answer GET /v2/spot/bids/{bid_fid}/history."""
    bid = surface.bid(call, fid)
    return calls.ok({"bid_fid": fid, "events": [_event(surface, event) for event in bid.history]})


def view(surface: Surface, call: Call, bid: Bid) -> dict[str, Any]:
    """Return a bid as the market shows it."""
    terms = bid.terms
    return {
        "fid": bid.fid,
        "name": bid.label or "",
        "project": terms.project,
        "created_by": surface.world.user_id,
        "created_at": calls.stamp(bid.created),
        "deactivated_at": calls.stamp_or_none(bid.ended),
        "limit_price": calls.dollars(bid.limit_cents),
        "instance_quantity": bid.quantity,
        "instance_type": bid.pool.kind.fid,
        "region": bid.pool.region,
        "instances": [vm.fid for vm in bid.vms],
        "launch_specification": {
            "volumes": list(bid.volumes),
            "ssh_keys": list(terms.ssh_keys),
            "startup_script": terms.script,
            "kubernetes_cluster": terms.cluster,
            "image_version": terms.image_version,
            "memory_gb": terms.memory_gb,
        },
        "status": _status(call, bid),
    }


def _status(call: Call, bid: Bid) -> str:
    fault = call.struck.get("unknown_status")
    return bid.status.value if fault is None else str(fault.extra.get("status", "unknown"))


def _event(surface: Surface, event: Event) -> dict[str, Any]:
    row = {
        "timestamp": calls.stamp(event.at),
        "event_type": event.kind.value,
        "limit_price": calls.dollars(event.limit_cents),
        "user_id": surface.world.user_id,
        "memory_gb": None,
    }
    if event.volume is None:
        # The vendor's own bindings fail on a null here.
        return row
    is_new = event.kind is Happening.VOLUMES_ATTACHED
    change = {"attached": event.volume if is_new else None, "removed": None if is_new else event.volume}
    return {**row, "persistent_disk_change": change}
