"""Renting: one offer, many, or whatever a search finds.

1. A price rents interruptible, no price rents on demand; the answer does not show which.
2. A bid below the floor answers success false at 200 and leaves a stopped contract that bills its disk.
"""

import random
from collections.abc import Mapping
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.market_model import Refusal
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import filter_grammar, refusals
from agent.simulator.vast.http.surface import Surface
from agent.simulator.vast.model import Contract, RentTerms

LEAST_PRICE, MOST_PRICE = 0.001, 128.0
LONGEST_LABEL = 256
LONGEST_SCRIPT = 4048
"""By the vendor's OpenAPI file. The refusal of a longer one is assumed."""
LEAST_DISK_GB = 8.0
DEFAULT_DISK_GB = 10.0


def rent(surface: Surface, call: Call) -> Reply:
    """Answer a create."""
    if call.is_body_broken or not isinstance(call.body, dict):
        return refusals.bad_arguments("'image' is required, the body must be JSON.", call.id)
    return _answer(surface, call, call.id)


def rent_many(surface: Surface, call: Call) -> Reply:
    """Answer a bulk create: each offer is rented by itself, and the first refusal ends the call."""
    offers = call.fields.get("ids")
    if not isinstance(offers, list) or not offers or not all(isinstance(offer, int) for offer in offers):
        return refusals.bad_arguments("'ids' is required.", 0)
    answers = []
    for offer_id in offers:
        outcome = _create(surface, call, offer_id)
        if isinstance(outcome, Reply):
            return outcome
        answers.append({"ask_id": offer_id, "new_contract": outcome.contract_id, "success": not outcome.is_underbid})
    return calls.success(results=answers, new_contracts=[item["new_contract"] for item in answers])


def launch(surface: Surface, call: Call) -> Reply:
    """Answer a search and a create in one call, on demand only: it takes no price."""
    question = call.fields.get("q")
    if not isinstance(question, dict):
        return calls.refuse(400, "invalid_request", "Invalid json body")
    dice = random.Random(f"launch/{call.number}")
    rows = surface.search.find(question, dice)
    if not rows:
        return calls.refuse(404, "no_such_ask", "No offers match the query.")
    return _answer(surface, call, rows[0]["id"])


def _answer(surface: Surface, call: Call, offer_id: int) -> Reply:
    outcome = _create(surface, call, offer_id)
    if isinstance(outcome, Reply):
        return outcome
    body = {"new_contract": outcome.contract_id, "error": None, "msg": None}
    if outcome.is_underbid:
        return calls.ok({"success": False, **body})
    return calls.success(**body, instance_api_key=surface.gate.instance_key(outcome.contract_id))


def _create(surface: Surface, call: Call, offer_id: int) -> Contract | Reply:
    fields = call.fields
    if (complaint := _complaint(fields)) is not None:
        return refusals.bad_arguments(complaint, offer_id)
    if "wrong_account" in call.struck:
        return refusals.insufficient_credit(offer_id)
    bid = _price(fields)
    if bid is not None and not LEAST_PRICE <= bid <= MOST_PRICE:
        refusal = Refusal(Refusal.BAD_PRICE, f"price must lie between {LEAST_PRICE} and {MOST_PRICE:g}.")
        return refusals.of_create(refusal, offer_id, was_listed=True)
    try:
        return surface.world.create(offer_id, _terms(fields), bid=bid, cancel_unavailable=fields.get("cancel_unavail"))
    except Refusal as refusal:
        was_listed = offer_id in surface.world.slices
        return refusals.of_create(refusal, offer_id, was_listed=was_listed)


def _complaint(fields: Mapping[str, Any]) -> str | None:
    if not fields.get("image") and not fields.get("template_hash_id"):
        return "'image' is required."
    if not isinstance(fields.get("image") or "", str):
        return "'image' must be a string."
    label = fields.get("label")
    if label is not None and (not isinstance(label, str) or len(label) > LONGEST_LABEL):
        return f"'label' must be a string of at most {LONGEST_LABEL} characters."
    disk = filter_grammar.to_number(fields.get("disk", DEFAULT_DISK_GB))
    if disk is None or disk < LEAST_DISK_GB:
        return f"'disk' must be at least {LEAST_DISK_GB:g}."
    script = fields.get("onstart")
    if isinstance(script, str) and len(script) > LONGEST_SCRIPT:
        return f"'onstart' has at most {LONGEST_SCRIPT} characters."
    price = fields.get("price")
    if price is not None and filter_grammar.to_number(price) is None:
        return "'price' must be a number."
    return None


def _price(fields: Mapping[str, Any]) -> float | None:
    price = fields.get("price")
    return None if price is None else filter_grammar.to_number(price)


def _terms(fields: Mapping[str, Any]) -> RentTerms:
    env, args = fields.get("env"), fields.get("args")
    return RentTerms(
        # `_complaint` has refused everything that is no number.
        disk_gb=filter_grammar.to_number(fields.get("disk", DEFAULT_DISK_GB)) or 0.0,
        image=fields.get("image") or f"template/{fields.get('template_hash_id')}",
        label=fields.get("label"),
        onstart=fields.get("onstart"),
        env={str(name): str(value) for name, value in env.items()} if isinstance(env, dict) else {},
        args=tuple(str(arg) for arg in args) if isinstance(args, list) else (),
        runtype=fields.get("runtype") or "ssh",
        template=fields.get("template_hash_id"),
    )
