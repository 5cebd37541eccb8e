"""Pending price increases of on-demand contracts: listed, accepted and rejected one by one."""

from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http.surface import Surface
from agent.simulator.vast.landlord import Rise

_HOUR = 3600.0
_KEY = "pending_price_increase_id"


def show(surface: Surface, call: Call) -> Reply:
    """Answer every pending rise."""
    rises = [] if "wrong_account" in call.struck else surface.world.landlord.pending()
    rows = [_row(rise) for rise in rises]
    return calls.success(count=len(rows), truncated=False, pending_price_increases=rows)


def accept(surface: Surface, call: Call) -> Reply:
    """Answer that a rise is the new price."""
    return _settled(surface, call, is_accepted=True)


def reject(surface: Surface, call: Call) -> Reply:
    """Answer that a rise is gone."""
    return _settled(surface, call, is_accepted=False)


def _settled(surface: Surface, call: Call, *, is_accepted: bool) -> Reply:
    number = call.fields.get(_KEY)
    if call.fields.keys() != {_KEY} or not isinstance(number, int) or isinstance(number, bool):
        return calls.refuse(400, "invalid_args", f"The body must be {_KEY} alone.")
    rise = None
    if "wrong_account" not in call.struck:
        rise = surface.world.landlord.answer(number, is_accepted=is_accepted)
    if rise is None:
        return calls.refuse(404, "no_pending_price_increase", "No pending price increase of that id.")
    return calls.success(**{_KEY: number, "contract_id": rise.contract.contract_id})


def _row(rise: Rise) -> dict[str, Any]:
    contract = rise.contract
    unchanged = ("disk_ram_costpersec", "bwu_cost", "bwd_cost", "platform_fee")
    return {
        _KEY: rise.rise_id,
        "contract_id": contract.contract_id,
        "host_id": contract.host.owner_id,
        "new_gpu_costpersec": rise.new_price / _HOUR,
        "old_gpu_costpersec": rise.old_price / _HOUR,
        **{f"{age}_{name}": None for name in unchanged for age in ("new", "old")},
        "contract_end_date": contract.end_time,
        "ask_end_date": rise.end_time,
        "created_at": rise.created,
    }
