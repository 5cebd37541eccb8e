"""Volumes over HTTP: searched, rented, listed and deleted."""

from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.market_model import Refusal
from agent.simulator.vast import calls, volume_store
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import filter_grammar, offer_rows
from agent.simulator.vast.http.surface import Surface
from agent.simulator.vast.model import Host
from agent.simulator.vast.volume_store import Volume

DEFAULT_GB = 15
MOST_OFFERS = 64


def search(surface: Surface, call: Call) -> Reply:
    """Answer offers of volumes, the cheapest first. Of the filters only disk_space, machine_id and verified count."""
    room = surface.world.landlord.storeroom
    rows = [_offer(surface, host, room.free_gb(host), call.fields) for host in room.offers()]
    for name in ("disk_space", "machine_id", "verified"):
        conditions = call.fields.get(name)
        for operator, value in conditions.items() if isinstance(conditions, dict) else ():
            if operator not in filter_grammar.OPERATORS:
                return calls.refuse(400, "invalid_args", f"Invalid query: {name} has no valid operator")
            test = filter_grammar.compile_one(operator, value)
            rows = [row for row in rows if test(row[name])]
    rows.sort(key=lambda row: (row["storage_cost"], row["id"]))
    limit = filter_grammar.to_number(call.fields.get("limit"))
    return calls.ok({"offers": rows[: int(limit) if limit is not None and limit > 0 else MOST_OFFERS]})


def show(surface: Surface, call: Call) -> Reply:
    """Answer the volumes that exist."""
    volumes = [] if "wrong_account" in call.struck else surface.world.landlord.storeroom.live()
    wanted = call.query.get("type", "all_volume").strip('"')
    if wanted == "network_volume":
        volumes = []
    return calls.success(volumes=[_row(surface, volume) for volume in volumes])


def rent(surface: Surface, call: Call) -> Reply:
    """Answer a new volume."""
    number = call.fields.get("id")
    size = filter_grammar.to_number(call.fields.get("size", DEFAULT_GB))
    if not isinstance(number, int) or isinstance(number, bool) or size is None:
        return calls.refuse(400, "invalid_args", "Please provide a valid volume ID and size.")
    name = call.fields.get("name")
    try:
        volume = surface.world.landlord.storeroom.rent(number, size, name if isinstance(name, str) else None)
    except Refusal as refusal:
        if refusal.code == Refusal.NO_SUCH_ASK:
            return calls.refuse(404, "no_such_ask", refusal.sentence)
        code = "insufficient_credit" if refusal.code == Refusal.INSUFFICIENT_CREDIT else "invalid_args"
        return calls.refuse(400, code, refusal.sentence)
    return calls.success(volume_name=volume.label)


def remove(surface: Surface, call: Call) -> Reply:
    """Answer that a volume is gone; its id may be in the body or, as the vendor's own program has it, in the query."""
    number = filter_grammar.to_number(call.fields.get("id", call.query.get("id")))
    if number is None:
        return calls.refuse(400, "invalid_args", "Please provide a valid volume ID.")
    if "wrong_account" in call.struck:
        return calls.refuse(404, "not_found", "Volume with that ID does not exist.")
    try:
        surface.world.landlord.storeroom.remove(int(number))
    except Refusal as refusal:
        return calls.refuse(404, "not_found", refusal.sentence)
    return calls.success()


def _offer(surface: Surface, host: Host, free_gb: float, asked: dict[str, Any]) -> dict[str, Any]:
    size = filter_grammar.to_number(asked.get("allocated_storage")) or 1.0
    number = volume_store.FIRST_ASK + host.machine_id
    return {
        **offer_rows.machine_columns(host),
        "id": number,
        "ask_contract_id": number,
        "disk_space": free_gb,
        "duration": host.end_time - surface.world.now,
        "verified": host.verification == "verified",
        "storage_total_cost": host.storage_price * size / volume_store.HOURS_PER_MONTH,
    }


def _row(surface: Surface, volume: Volume) -> dict[str, Any]:
    host = volume.host
    return {
        **offer_rows.machine_columns(host),
        "id": volume.contract_id,
        "cluster_id": None,
        "label": volume.label,
        "status": "active" if host.is_online else "offline",
        "disk_space": volume.disk_gb,
        "storage_total_cost": host.storage_price * volume.disk_gb / volume_store.HOURS_PER_MONTH,
        "start_date": volume.created,
        "end_date": volume.end_time,
        "duration": volume.end_time - surface.world.now,
        "instances": [],
    }
