"""Webhooks of the market: a person registers them, and our web server receives them.

The market shows the secret of a webhook once, in the answer that registers it.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from agent.clock import Clock
from agent.markets import market_errors, pace, transport
from agent.markets.vast import client, refusals

EVENTS = (
    "client:outbid",
    "client:instance_stopped",
    "client:instance_offline",
    "client:instance_online",
    "client:instance_resumed",
    "client:low_credit",
    "client:machine_maintenance",
    "client:upcoming_downtime",
    "client:near_end_date",
)
"""Notices that start a cycle at once; the listing says what they mean."""
PATH = "/api/v0/webhooks/"
T = TypeVar("T")


class _Hook(msgspec.Struct):
    webhook_url: str = ""
    webhook_secret: str = ""


class _Added(msgspec.Struct):
    webhook: _Hook = msgspec.field(default_factory=_Hook)


class _Shown(msgspec.Struct):
    webhooks: list[_Hook] = msgspec.field(default_factory=list)


async def register(url: str, base: str, secret: Callable[[], str], clock: Clock) -> str:
    """Register `url` at the market at `base`, and return the secret that the market will sign with.

    Raises:
        Rejected: the address is registered already, the market refuses it, or it showed no secret.
        Throttled, Unavailable, Unauthorized, Ambiguous, Malformed: as every call.
    """
    link = transport.Transport(base, secret, clock, pace.Pace(clock, client.LANES), lambda: 0.5)
    try:
        known = await link.read(transport.Call("account", "GET", PATH))
        if any(hook.webhook_url == url for hook in _decoded(refusals.check_read(known), _Shown).webhooks):
            sentence = f"{url} is registered already, and its secret is shown once; delete it in the console first."
            raise market_errors.Rejected("already_registered", sentence)
        body = msgspec.json.encode({"name": "gpubid", "webhook_url": url, "event_types": list(EVENTS)})
        reply = await link.write(transport.Call("account", "POST", PATH, body))
        if not reply.is_ok:
            raise market_errors.Rejected(
                "webhook_refused", f"vast does not take the webhook ({refusals.answer(reply)})."
            )
        returned = _decoded(refusals.check_read(reply), _Added).webhook.webhook_secret
    finally:
        await link.close()
    if not returned:
        raise market_errors.Rejected(
            "no_secret", "The market registered the webhook and showed no secret; delete it there."
        )
    return returned


def _decoded(raw: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise market_errors.Malformed(f"The webhooks are not what vast documents: {str(error)[:100]}") from None
