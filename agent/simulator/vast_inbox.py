"""Notices: the inbox, where alone the API says "outbid", and the webhooks, which are stored and never called.

The inbox shows only the kinds whose channel "in_app" is on. By default those are started, resumed and outbid: the
recorded inboxes of a busy fleet hold no others, although instances were created, stopped and deleted all the time.
"""

import hashlib
import ipaddress
import itertools
import urllib.parse
from collections.abc import Sequence
from typing import Any

from agent.simulator import vast_calls, vast_filters
from agent.simulator.model import Notice, NoticeKind
from agent.simulator.vast_calls import Call, Reply
from agent.simulator.vast_surface import Surface

MOST_NOTICES = 50
MOST_WEBHOOKS = 4
SHOWN = frozenset({NoticeKind.STARTED, NoticeKind.RESUMED, NoticeKind.OUTBID})

# Slug, subject and sentence of each kind. {id}, {machine}, {image}, {price} and {floor} are filled in.
_WORDS: dict[NoticeKind, tuple[str, str, str]] = {
    NoticeKind.CREATED: (
        "instance_created",
        "Your Vast.ai Instance Was Created",
        "Your instance {id} running {image} on machine {machine} has been created.",
    ),
    NoticeKind.STARTED: (
        "instance_started",
        "Your Vast.ai Instance Is Now Running",
        "Your instance {id} running {image} on machine {machine} has started. You are being charged ${price:.3f}/hr.",
    ),
    NoticeKind.STOPPED: (
        "instance_stopped",
        "Your Vast.ai Instance Has Stopped",
        "Your instance {id} running {image} on machine {machine} has stopped.",
    ),
    NoticeKind.RESUMED: (
        "instance_resumed",
        "Your Vast.ai Instance Has Resumed",
        "Your instance {id} running {image} on machine {machine} runs again.",
    ),
    NoticeKind.OUTBID: (
        "outbid",
        "Your Vast.ai Instance Was Outbid",
        "Your instance {id} on machine {machine} at ${price:.2f}/hr has been outbid and will be stopped.",
    ),
    NoticeKind.DELETED: (
        "instance_deleted",
        "Your Vast.ai Instance Was Deleted",
        "Your instance {id} on machine {machine} is deleted.",
    ),
    NoticeKind.OFFLINE: (
        "instance_offline",
        "Your Vast.ai Instance Is Offline",
        "Machine {machine} of your instance {id} is offline.",
    ),
    NoticeKind.ONLINE: (
        "instance_online",
        "Your Vast.ai Instance Is Back Online",
        "Machine {machine} of your instance {id} is online.",
    ),
    NoticeKind.LOW_CREDIT: ("low_credit", "Your Vast.ai Credit Is Low", "Your credit is running out."),
    NoticeKind.CONTAINER_ERROR: (
        "error_msgs",
        "Your Vast.ai Instance Reported an Error",
        "Your instance {id} running {image} on machine {machine} reported an error.",
    ),
}


def show_inbox(surface: Surface, call: Call) -> Reply:
    """Answer the last rows, newest first."""
    notices = [] if "wrong_account" in call.struck else _shown(surface.world.inbox)
    rows = [_row(notice) for notice in notices]
    unread = sum(1 for notice in notices if notice.at > surface.seen_through)
    seen = surface.seen_through or None
    return vast_calls.success(
        notifications=rows, last_seen_at=surface.last_seen, seen_through_at=seen, unread_count=unread
    )


def mark_seen(surface: Surface, call: Call) -> Reply:
    """Answer that the rows up to a time are read."""
    until = vast_filters.to_number(call.fields.get("seen_through_at"))
    if until is None:
        return vast_calls.refuse(400, "invalid_args", "'seen_through_at' must be a number.")
    surface.seen_through = max(surface.seen_through, until)
    surface.last_seen = call.now
    return vast_calls.success(seen_through_at=surface.seen_through)


def show_types(_: Surface, __: Call) -> Reply:
    """Answer the kinds of notices there are."""
    kinds = [
        {
            "category": "transactional",
            "context": "client",
            "default_preferences": {
                "email": kind is NoticeKind.LOW_CREDIT,
                "in_app": kind in SHOWN,
                "sms": False,
                "webhooks": False,
                "whatsapp": False,
            },
            "display_name": subject.removeprefix("Your Vast.ai "),
            "effects_opt_in_policy": "none",
            "key": f"client:{slug}",
            "mandatory_email": False,
            "security_critical": False,
            "slug": slug,
            "topic": "billing" if kind is NoticeKind.LOW_CREDIT else "instance",
            "unreleased": False,
        }
        for kind, (slug, subject, _) in _WORDS.items()
    ]
    return vast_calls.success(notification_types=kinds)


def _shown(inbox: Sequence[Notice]) -> list[Notice]:
    newest_first = (notice for notice in reversed(inbox) if notice.kind in SHOWN)
    return list(itertools.islice(newest_first, MOST_NOTICES))


def _row(notice: Notice) -> dict[str, Any]:
    slug, subject, sentence = _WORDS[notice.kind]
    about: dict[str, Any] = {"instance_id": notice.contract_id, "machine_id": notice.machine_id}
    if notice.kind is NoticeKind.OUTBID:
        about["your_bid"] = round(notice.price or 0.0, 2)
        about["new_min_bid"] = round(notice.new_floor or 0.0, 2)
    return {
        "associated_id": about,
        "created_at": notice.at,
        "event_id": notice.event_id,
        "message": sentence.format(
            id=notice.contract_id,
            machine=notice.machine_id,
            image=notice.image,
            price=notice.price or 0.0,
            floor=notice.new_floor or 0.0,
        ),
        "notif_type": slug,
        "subject": subject,
        "user_context": "client",
    }


def show_webhooks(surface: Surface, _: Call) -> Reply:
    """Answer the stored webhooks, without their secrets."""
    shown = [{key: hook[key] for key in hook if key != "webhook_secret"} for hook in surface.webhooks.values()]
    return vast_calls.success(webhooks=shown)


def add_webhook(surface: Surface, call: Call) -> Reply:
    """Answer a new webhook with its secret, the only time it is told."""
    fields = call.fields
    if (complaint := _complaint(fields)) is not None:
        return vast_calls.refuse(400, "invalid_args", complaint)
    if len(surface.webhooks) >= MOST_WEBHOOKS:
        return vast_calls.refuse(400, "invalid_args", f"At most {MOST_WEBHOOKS} webhooks are allowed.")
    number = max(surface.webhooks, default=0) + 1
    hook = {
        "id": number,
        "user_id": surface.account_id(call),
        "name": fields.get("name"),
        "webhook_url": fields["webhook_url"],
        "event_types": fields["event_types"],
        "created_at": call.now,
        "updated_at": call.now,
        "webhook_secret": hashlib.sha256(f"webhook/{surface.world.account_id}/{number}".encode()).hexdigest(),
    }
    surface.webhooks[number] = hook
    return vast_calls.success(webhook=hook, enabled_notification_preferences=fields["event_types"])


def change_webhook(surface: Surface, call: Call) -> Reply:
    """Answer a changed webhook."""
    hook = surface.webhooks.get(call.id)
    if hook is None:
        return vast_calls.refuse(404, "not_found", "Webhook not found")
    changed: dict[str, Any] = {
        key: call.fields[key] for key in ("name", "webhook_url", "event_types") if key in call.fields
    }
    if (complaint := _complaint({**hook, **changed})) is not None:
        return vast_calls.refuse(400, "invalid_args", complaint)
    hook.update(changed, updated_at=call.now)
    shown = {key: hook[key] for key in hook if key != "webhook_secret"}
    return vast_calls.success(webhook=shown, enabled_notification_preferences=hook["event_types"])


def remove_webhook(surface: Surface, call: Call) -> Reply:
    """Answer that a webhook is gone."""
    if surface.webhooks.pop(call.id, None) is None:
        return vast_calls.refuse(404, "not_found", "Webhook not found")
    return vast_calls.success()


def _complaint(fields: dict[str, Any]) -> str | None:
    events = fields.get("event_types")
    if not isinstance(events, list) or not events or not all(isinstance(event, str) for event in events):
        return "'event_types' must name at least one event."
    known = {f"client:{slug}" for slug, _, _ in _WORDS.values()}
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
