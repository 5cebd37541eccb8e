"""Webhooks: stored, changed, tested and given new secrets. signed_deliveries.py sends to them."""

import hashlib
import ipaddress
import urllib.parse
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import notice_words
from agent.simulator.vast.http.surface import Surface

MOST_WEBHOOKS = 4


def show_webhooks(surface: Surface, _: Call) -> Reply:
    """Answer the stored webhooks, without their secrets."""
    return calls.success(webhooks=[_without_secret(hook) for hook in surface.webhooks.values()])


def add_webhook(surface: Surface, call: Call) -> Reply:
    """Answer a new webhook with its secret, which is shown only this once."""
    fields = call.fields
    if (complaint := _complaint(fields)) is not None:
        return calls.refuse(400, "invalid_args", complaint)
    if len(surface.webhooks) >= MOST_WEBHOOKS:
        return calls.refuse(400, "invalid_args", f"At most {MOST_WEBHOOKS} webhooks are allowed.")
    number = max(surface.webhooks, default=0) + 1
    hook = {
        "id": number,
        "user_id": surface.account_id(call),
        "name": fields.get("name"),
        "webhook_url": fields["webhook_url"],
        "event_types": fields["event_types"],
        "created_at": call.now,
        "updated_at": call.now,
        "webhook_secret": _secret(surface, number, 0),
    }
    surface.webhooks[number] = hook
    return calls.success(webhook=hook, enabled_notification_preferences=fields["event_types"])


def change_webhook(surface: Surface, call: Call) -> Reply:
    """Answer a changed webhook."""
    hook = surface.webhooks.get(call.id)
    if hook is None:
        return calls.refuse(404, "not_found", "Webhook not found")
    changed: dict[str, Any] = {
        key: call.fields[key] for key in ("name", "webhook_url", "event_types") if key in call.fields
    }
    if (complaint := _complaint({**hook, **changed})) is not None:
        return calls.refuse(400, "invalid_args", complaint)
    hook.update(changed, updated_at=call.now)
    return calls.success(webhook=_without_secret(hook), enabled_notification_preferences=hook["event_types"])


def remove_webhook(surface: Surface, call: Call) -> Reply:
    """Answer that a webhook is gone."""
    if surface.webhooks.pop(call.id, None) is None:
        return calls.refuse(404, "not_found", "Webhook not found")
    return calls.success()


def rotate_secret(surface: Surface, call: Call) -> Reply:
    """Answer a webhook with a new secret; the old one signs nothing from now on."""
    hook = surface.webhooks.get(call.id)
    if hook is None:
        return calls.refuse(404, "not_found", "Webhook not found")
    hook.update(webhook_secret=_secret(surface, call.id, call.number), updated_at=call.now)
    return calls.success(webhook=hook)


def try_out(surface: Surface, call: Call) -> Reply:
    """Answer that a test event is on its way; it is delivered once."""
    hook = surface.webhooks.get(call.id)
    if hook is None:
        return calls.refuse(404, "not_found", "Webhook not found")
    surface.deliveries.try_out(hook, call.number, call.now)
    return calls.success(msg="Test webhook delivered")


def _without_secret(hook: dict[str, Any]) -> dict[str, Any]:
    return {key: hook[key] for key in hook if key != "webhook_secret"}


def _secret(surface: Surface, number: int, turn: int) -> str:
    return hashlib.sha256(f"webhook/{surface.world.account_id}/{number}/{turn}".encode()).hexdigest()


def _complaint(fields: dict[str, Any]) -> str | None:
    events = fields.get("event_types")
    if not isinstance(events, list) or not events or not all(isinstance(event, str) for event in events):
        return "'event_types' must name at least one event."
    known = {f"client:{slug}" for slug, _, _ in notice_words.WORDS.values()}
    if unknown := [event for event in events if event.startswith("client:") and event not in known]:
        return f"Unknown event type {unknown[0]}."
    url = urllib.parse.urlsplit(str(fields.get("webhook_url") or ""))
    if url.scheme != "https" or not url.hostname:
        return "'webhook_url' must be an https address."
    return None if _is_public(url.hostname) else "'webhook_url' must lead to a public address."


def _is_public(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_global
    except ValueError:
        return name != "localhost" and not name.endswith((".localhost", ".local", ".internal"))
