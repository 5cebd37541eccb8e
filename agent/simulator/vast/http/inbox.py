"""The inbox, the only place where the API says "outbid", and the kinds of notices.

The inbox shows only the kinds whose channel "in_app" is on. By default those are started, resumed and outbid. The
recorded inboxes of a busy fleet contain no others, although instances were created, stopped and deleted all the time.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import filter_grammar, notice_words
from agent.simulator.vast.http.surface import Surface
from agent.simulator.vast.model import Notice, NoticeKind

MOST_NOTICES = 50
SHOWN = frozenset({NoticeKind.STARTED, NoticeKind.RESUMED, NoticeKind.OUTBID})

_MAILED = frozenset({NoticeKind.LOW_CREDIT, NoticeKind.MAINTENANCE, NoticeKind.UPCOMING_DOWNTIME, NoticeKind.NEAR_END})
_DISPLAYED = {NoticeKind.OUTBID: "Instance outbid"}


def show_inbox(surface: Surface, call: Call) -> Reply:
    """Answer the last rows, newest first."""
    notices = [] if "wrong_account" in call.struck else _shown(surface.world.inbox)
    rows = [_row(notice) for notice in notices]
    unread = sum(1 for notice in notices if notice.at > surface.seen_through)
    seen = surface.seen_through or None
    return calls.success(notifications=rows, last_seen_at=surface.last_seen, seen_through_at=seen, unread_count=unread)


def mark_seen(surface: Surface, call: Call) -> Reply:
    """Mark the rows up to a time as read."""
    until = filter_grammar.to_number(call.fields.get("seen_through_at"))
    if until is None:
        return calls.refuse(400, "invalid_args", "'seen_through_at' must be a number.")
    surface.seen_through = max(surface.seen_through, until)
    surface.last_seen = call.now
    return calls.success(seen_through_at=surface.seen_through)


def show_types(_: Surface, __: Call) -> Reply:
    """Answer all kinds of notices."""
    kinds = [
        {
            "category": "transactional",
            "context": "client",
            "default_preferences": {
                "email": kind in _MAILED,
                "in_app": kind in SHOWN,
                "sms": False,
                "webhooks": False,
                "whatsapp": False,
            },
            "display_name": _DISPLAYED.get(kind, subject.removeprefix("Your Vast.ai ")),
            "effects_opt_in_policy": "none",
            "key": f"client:{slug}",
            "mandatory_email": False,
            "security_critical": False,
            "slug": slug,
            "topic": "billing" if kind is NoticeKind.LOW_CREDIT else "instance",
            "unreleased": False,
        }
        for kind, (slug, subject, _) in notice_words.WORDS.items()
    ]
    return calls.success(notification_types=kinds)


def _shown(inbox: Sequence[Notice]) -> list[Notice]:
    newest_first = (notice for notice in reversed(inbox) if notice.kind in SHOWN)
    return list(itertools.islice(newest_first, MOST_NOTICES))


def _row(notice: Notice) -> dict[str, Any]:
    slug, subject, message = notice_words.words(notice)
    about: dict[str, Any] = {"instance_id": notice.contract_id, "machine_id": notice.machine_id}
    if notice.kind is NoticeKind.OUTBID:
        about["your_bid"] = round(notice.price or 0.0, 2)
        about["new_min_bid"] = round(notice.new_floor or 0.0, 2)
    return {
        "associated_id": about,
        "created_at": notice.at,
        "event_id": notice.event_id,
        "message": message,
        "notif_type": slug,
        "subject": subject,
        "user_context": "client",
    }
