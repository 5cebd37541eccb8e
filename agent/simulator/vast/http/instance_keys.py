"""The ssh keys of an instance: the keys of the account when it was made, and keys attached later."""

import json
import re

from agent.simulator.api_calls import Reply
from agent.simulator.market_model import Refusal
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import refusals
from agent.simulator.vast.http.surface import Surface

_PUBLIC = re.compile(r"(ssh-|ecdsa-|sk-)\S+ \S+( .*)?")
FIRST_ATTACHED = 900_000


def show(surface: Surface, call: Call) -> Reply:
    """Answer the keys, as a list written as JSON inside a text."""
    try:
        surface.contract(call, call.id)
    except Refusal:
        return refusals.no_such_instance()
    rows = [{"id": number, "public_key": key} for number, key in of(surface, call.id).items()]
    return calls.success(ssh_keys=json.dumps(rows))


def attach(surface: Surface, call: Call) -> Reply:
    """Answer a key that is attached to the instance."""
    text = call.fields.get("ssh_key")
    if call.is_body_broken or not isinstance(text, str) or not _PUBLIC.fullmatch(text.strip()):
        return calls.refuse(400, "invalid_args", "Invalid ssh_key.")
    try:
        surface.contract(call, call.id)
    except Refusal:
        return refusals.no_such_instance()
    keys = of(surface, call.id)
    if text.strip() not in keys.values():
        keys[max(keys, default=FIRST_ATTACHED) + 1] = text.strip()
    return calls.success(msg="SSH key attached successfully")


def detach(surface: Surface, call: Call) -> Reply:
    """Answer a key that is removed from the instance."""
    instance_id, number = call.numbers
    try:
        surface.contract(call, instance_id)
    except Refusal:
        return refusals.no_such_instance()
    if of(surface, instance_id).pop(number, None) is None:
        return calls.refuse(404, "no_such_ssh_key", "SSH key not found.")
    return calls.success(msg="SSH key removed from instance.")


def of(surface: Surface, instance_id: int) -> dict[int, str]:
    """Return the keys of an instance by their numbers. A new instance has the keys of the account."""
    account = {number: row["key"] for number, row in surface.ssh_keys.items()}
    return surface.attached_keys.setdefault(instance_id, account)
