"""The instances of our bids: the list, their states, and the prices that they paid."""

from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.mithril.http import calls, pages
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.mithril.model import Bid, Refused
from agent.simulator.mithril.vms import Vm, VmStatus

_STATUSES = (
    *(status.value for status in VmStatus),
    *("STATUS_RELOCATING", "STATUS_REPLACED"),
)
_Row = tuple[Bid, Vm]


def listed(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/instances."""
    surface.project(call, call.required("project"))
    call.choice("sort_by", ("created_at", "instance_status", "instance_type_fid"))
    statuses, bids, orders = (call.words(name) for name in ("status_in", "bid_fid_in", "order_type_in"))
    for word in statuses:
        if word not in _STATUSES:
            raise Refused(422, "Input should be a status of an instance", ("query", "status_in"))
    query = call.query
    rows = [
        (bid, vm)
        for bid in surface.listed(call)
        for vm in bid.vms
        if (not statuses or vm.status.value in statuses)
        and (not bids or bid.fid in bids)
        and (not orders or "Bid" in orders)
        and query.get("instance_type") in (None, "", bid.pool.kind.fid)
        and query.get("region") in (None, "", bid.pool.region)
        and not query.get("reservation_fid_in")
    ]
    return pages.page(call, rows, lambda row: row[1].number, lambda row: _view(surface, row), "data")


def status(surface: Surface, call: Call, fid: str) -> Reply:
    """Answer GET /v2/instances/{instance_fid}/status."""
    bid, vm = _one(surface, call, fid)
    ended = vm.statuses[-1][0] if vm.is_ended else None
    return calls.ok(
        {
            "fid": vm.fid,
            "name": vm.name,
            "status": vm.status.value,
            "bid": bid.fid,
            "reservation": None,
            "end_time": calls.stamp_or_none(ended),
        }
    )


def statuses(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/instances/status/history."""

    def events(vm: Vm, since: float, until: float) -> list[dict[str, Any]]:
        return [
            {"timestamp": calls.stamp(at), "status": status.value} for at, status in vm.statuses if since <= at <= until
        ]

    return _history(surface, call, events)


def prices(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/instances/pricing/history: the bill, by instance and price."""

    def events(vm: Vm, since: float, until: float) -> list[dict[str, Any]]:
        return [
            {
                "price_cents": period.cents,
                "start_time": calls.stamp(period.start),
                "end_time": calls.stamp_or_none(period.end),
            }
            for period in vm.prices
            if period.start <= until and (period.end is None or period.end >= since)
        ]

    return _history(surface, call, events)


def change(_: Surface, _call: Call) -> Reply:
    """Answer PATCH /v2/instances, which the market has for reservations alone."""
    raise Refused(501, "Not implemented for spot instances")


def restart(surface: Surface, call: Call, fid: str) -> Reply:
    """Answer POST /v2/instances/{instance_fid}/restart, which the market has for reservations alone."""
    _one(surface, call, fid)
    raise Refused(501, "Not implemented for spot instances")


def _history(surface: Surface, call: Call, events: Any) -> Reply:  # noqa: ANN401 - a function of one instance
    surface.project(call, call.required("project"))
    since, until = call.instant("start_time", 0.0), call.instant("end_time", surface.world.now)
    one, of_bid = call.query.get("instance_fid"), call.query.get("bid_fid")
    rows = [
        (bid, vm)
        for bid in surface.listed(call)
        for vm in bid.vms
        if one in (None, "", vm.fid) and of_bid in (None, "", bid.fid) and not call.query.get("reservation_fid")
    ]

    def view(row: _Row) -> dict[str, Any]:
        bid, vm = row
        return {
            "instance_fid": vm.fid,
            "events": events(vm, since, until),
            "bid_fid": bid.fid,
            "reservation_fid": None,
        }

    return pages.page(call, rows, lambda row: row[1].number, view, "instances")


def _one(surface: Surface, call: Call, fid: str) -> _Row:
    for bid in surface.world.bids.values() if "wrong_account" not in call.struck else ():
        for vm in bid.vms:
            if vm.fid == fid:
                return bid, vm
    raise Refused(404, "Instance not found")


def _view(surface: Surface, row: _Row) -> dict[str, Any]:
    bid, vm = row
    is_up = vm.status in (VmStatus.RUNNING, VmStatus.PREEMPTING)
    return {
        "fid": vm.fid,
        "name": vm.name,
        "project": bid.terms.project,
        "created_at": calls.stamp(vm.created),
        "created_by": surface.world.user_id,
        "instance_type": bid.pool.kind.fid,
        "region": bid.pool.region,
        "bid": bid.fid,
        "reservation": None,
        "ssh_destination": vm.address if is_up else None,
        "private_ip": f"10.0.{vm.number // 250}.{vm.number % 250 + 1}" if is_up else None,
        "status": vm.status.value,
    }
