"""The receiver of Vast.ai's signed webhooks. A delivery proves nothing and changes nothing; it starts the next cycle.

1. A delivery counts only with the right signature over its time and body, and only while it is fresh.
2. A repeated delivery of the same event starts no cycle: the market delivers each event at least once.
3. The answer to a refused delivery is a status alone, and its log has a bounded rate. The status matters: after a
   redirect or another 4xx the sender does not try again.
"""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime

import structlog
from aiohttp import web

from agent.clock import Clock
from agent.markets.vast import events
from agent.systemd import CredentialError
from agent.web.guards import bounded_body
from agent.web.guards.refusal_log import Refusals

log = structlog.get_logger("gpubid.webhook")

PATH = "/webhooks/vast"
REMEMBERED = 1_000


class Deliveries:
    """Accepts deliveries of one market."""

    def __init__(
        self, secret: Callable[[], str], clock: Clock, wake: Callable[[], None], refusals: Refusals | None = None
    ) -> None:
        """Check signatures with the result of `secret`, and call `wake` for a new delivery."""
        self._secret = secret
        self._clock = clock
        self._wake = wake
        self._refusals = refusals or Refusals(clock.monotonic)
        self._seen: OrderedDict[str, None] = OrderedDict()

    def route(self) -> web.RouteDef:
        """Return the route for deliveries."""
        return web.post(PATH, self._take)

    async def _take(self, request: web.Request) -> web.Response:
        raw = await bounded_body.body(request)
        stamp = request.headers.get("X-Vast-Timestamp", "")
        signature = request.headers.get("X-Vast-Signature-256", "")
        try:
            secret = self._secret().encode()
        except CredentialError as error:
            # The sender tries again, and the secret may be readable by then.
            self._refusals.refused("no_webhook_secret", request.remote, str(error))
            return web.Response(status=503)
        event = events.webhook(raw, stamp, signature, secret, self._clock.now())
        if event is None:
            self._refusals.refused("bad_delivery", request.remote, "not signed with our secret, or too old")
            return web.Response(status=401)
        if event.event_id not in self._seen:
            self._seen[event.event_id] = None
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            log.info("webhook.taken", kind=event.kind, instance=event.instance_id)
            self._wake()
        return web.Response(status=204)


def signed(raw: bytes, at: datetime, secret: str) -> dict[str, str]:
    """Return the headers with which the market would sign a delivery, for a test of the path to the daemon."""
    stamp = str(int(at.timestamp()))
    mark = hmac.new(secret.encode(), stamp.encode() + b"." + raw, hashlib.sha256).hexdigest()
    return {"X-Vast-Timestamp": stamp, "X-Vast-Signature-256": f"sha256={mark}", "Content-Type": "application/json"}
