"""Money and the account: the key's owner, the credit, the charges of each instance, and the payments."""

import base64
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from agent.simulator.api_calls import Reply
from agent.simulator.market_model import Charge, Refusal
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import filter_grammar, refusals
from agent.simulator.vast.http.surface import Surface

DAY = 86_400.0
HOURS_PER_MONTH = 720.0
MOST_CHARGES, DEFAULT_CHARGES = 500, 100
DEFAULT_INVOICES = 60
_ITEM_TYPES = {"gpu": "gpu", "disk": "disk", "download": "bwd", "upload": "bwu"}


def show_user(surface: Surface, call: Call) -> Reply:
    """Answer the key's account and its credit."""
    account = surface.account_id(call)
    credit = surface.world.credit if account == surface.world.account_id else 0.0
    return calls.ok(
        {
            "id": account,
            "key_id": account * 10 + 1,
            "email": f"renter-{account}@example.com",
            "username": f"renter-{account}",
            "balance": 0.0,
            "credit": credit,
            "billing_creditonly": True,
            "can_pay": True,
            "has_payment_method": False,
            "host_agreement_accepted": False,
            "is_email_verified": True,
            "ssh_key": "",
            "sid": f"{account:032x}",
            "api_key": "",
            "total_spend": -surface.world.charged_total(),
            "user": f"renter-{account}",
        }
    )


def show_balance(surface: Surface, call: Call) -> Reply:
    """Answer the deposit of an instance: nothing here is reserved until it is prepaid."""
    try:
        contract = surface.contract(call, call.id)
    except Refusal:
        return refusals.no_such_instance()
    left = surface.world.landlord.left_of_deposit(contract)
    months = left / (contract.locked_ask * HOURS_PER_MONTH) if left else 0
    return calls.success(refundable_deposit=left, total_discount=contract.discount, discount_months=months)


def prepay(surface: Surface, call: Call) -> Reply:
    """Answer a deposit with the months that it covers and the discount that it buys."""
    amount = filter_grammar.to_number(call.fields.get("amount"))
    if amount is None or amount <= 0:
        return calls.refuse(400, "invalid_args", "'amount' must be a number above 0.")
    try:
        months, discount = surface.world.landlord.prepay(surface.contract(call, call.id), amount)
    except Refusal as refusal:
        if refusal.code == Refusal.NO_SUCH_CONTRACT:
            return refusals.no_such_instance()
        code = "insufficient_credit" if refusal.code == Refusal.INSUFFICIENT_CREDIT else "invalid_args"
        return calls.refuse(400, code, refusal.sentence)
    return calls.success(timescale=months, discount_rate=discount, msg="")


def show_charges(surface: Surface, call: Call) -> Reply:
    """Answer one row per contract with an item per day, kind and rate, for whole UTC days."""
    filters = _json_object(call, "select_filters")
    days = filters.get("day") if filters is not None else None
    span = (_bound(days, "gte"), _bound(days, "lte"))
    if filters is None or span[0] is None or span[1] is None:
        text = "Must provide both 'day' gte and lte filters for instance charges"
        return calls.refuse(400, "invalid_request", text)
    rows = _charge_rows(_charges(surface, call, filters, span[0], span[1]), surface.world.landlord.storeroom.volumes)
    rows.sort(key=lambda row: (row["start"], row["source"]), reverse=call.query.get("latest_first", "true") == "true")
    return _paged(rows, call, DEFAULT_CHARGES, MOST_CHARGES)


def show_invoices(surface: Surface, call: Call) -> Reply:
    """Answer the payments; a missing range is refused with status 200."""
    filters = _json_object(call, "select_filters") or {}
    when = filters.get("when")
    since = _bound(when, "gte") if _bound(when, "gte") is not None else _bound(when, "gt")
    until = _bound(when, "lte") if _bound(when, "lte") is not None else _bound(when, "lt")
    if since is None or until is None or since > until:
        empty: dict[str, Any] = {"count": 0, "total": 0, "results": [], "next_token": None}
        return calls.ok({"success": False, "error": "Invalid date range", **empty})
    rows = [row for row in _payments(surface, call) if since <= row["start"] <= until]
    rows.sort(key=lambda row: row["start"], reverse=call.query.get("latest_first", "true") == "true")
    return _paged(rows, call, DEFAULT_INVOICES, MOST_CHARGES)


def _payments(surface: Surface, call: Call) -> list[dict[str, Any]]:
    if "wrong_account" in call.struck:
        return []
    paid = [(surface.opened_at, surface.opening_credit)]
    deposits = surface.world.climate.deposits
    paid += [(surface.opened_at + deposit.at_seconds, deposit.dollars) for deposit in deposits]
    return [
        {
            "start": at,
            "end": at,
            "type": "credit",
            "source": "stripe",
            "description": "Simulated payment",
            "amount": -dollars,
            "metadata": {"invoice_id": number, "service": "stripe_payments"},
            "items": [],
        }
        for number, (at, dollars) in enumerate(paid, start=1)
        if at <= call.now
    ]


def _charges(surface: Surface, call: Call, filters: Mapping[str, Any], since: float, until: float) -> Sequence[Charge]:
    kinds = filters.get("type", {}).get("in") if isinstance(filters.get("type"), dict) else None
    if "wrong_account" in call.struck:
        return []
    wanted = set(kinds) if isinstance(kinds, list) else {"instance", "volume"}
    volumes = surface.world.landlord.storeroom.volumes
    return [
        charge
        for charge in surface.world.charges(since // DAY * DAY, until)
        if ("volume" if charge.contract_id in volumes else "instance") in wanted
    ]


def _charge_rows(charges: Sequence[Charge], volumes: Collection[int]) -> list[dict[str, Any]]:
    by_contract: dict[int, list[Charge]] = {}
    for charge in charges:
        by_contract.setdefault(charge.contract_id, []).append(charge)
    return [
        _charge_row(contract_id, items, "volume" if contract_id in volumes else "instance")
        for contract_id, items in by_contract.items()
    ]


def _charge_row(contract_id: int, charges: Sequence[Charge], kind: str) -> dict[str, Any]:
    days = len({charge.day for charge in charges})
    label = charges[0].label
    return {
        "start": int(min(charge.start for charge in charges)),
        "end": int(max(charge.end for charge in charges)),
        "type": kind,
        "source": f"{kind}-{contract_id}",
        "description": f"{kind.capitalize()} {contract_id} Charges - {days} day{'s' if days > 1 else ''}",
        "amount": round(sum(charge.amount for charge in charges), 3),
        "metadata": {} if label is None else {"label": label},
        "items": [_charge_item(charge) for charge in charges],
    }


def _charge_item(charge: Charge) -> dict[str, Any]:
    unit, per = ("GB", "GB") if charge.kind in ("download", "upload") else ("hours", "hour")
    return {
        "start": int(charge.start),
        "end": int(charge.end),
        "type": _ITEM_TYPES[charge.kind],
        "source": None,
        "description": f"{charge.quantity:.3f} {unit} at ${charge.rate:.6g}/{per}",
        "amount": round(charge.amount, 6),
        "metadata": {},
        "items": [],
    }


def _paged(rows: Sequence[Mapping[str, Any]], call: Call, default: int, most: int) -> Reply:
    start = 0
    if token := call.query.get("after_token"):
        try:
            start = int(msgspec.json.decode(base64.b64decode(token, validate=True))["values"]["row"])
        except (ValueError, KeyError, TypeError):
            return calls.refuse(400, "invalid_token", "Invalid pagination token")
    limit = filter_grammar.to_number(call.query.get("limit")) or float(default)
    end = start + max(1, min(int(limit), most))
    shown = rows[start:end]
    following = base64.b64encode(msgspec.json.encode({"values": {"row": end}})).decode() if end < len(rows) else None
    return calls.success(count=len(shown), total=len(rows), next_token=following, results=shown)


def _json_object(call: Call, key: str) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(call.query.get(key) or "null")
    except msgspec.DecodeError:
        return None
    return value if isinstance(value, dict) else None


def _bound(conditions: object, key: str) -> float | None:
    return filter_grammar.to_number(conditions.get(key)) if isinstance(conditions, dict) else None
