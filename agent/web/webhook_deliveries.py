"""The receiver of markets' signed webhooks. A delivery proves nothing and changes nothing; it starts the next cycle.

1. A delivery counts only with the right signature over its time and body, and only while it is fresh.
2. A repeated delivery of the same event starts no cycle: the market delivers each event at least once.
3. The answer to a refused delivery is a status alone, and its log has a bounded rate. The status matters: after a
   redirect or another 4xx the sender does not try again.
"""

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence

import structlog
from aiohttp import web

from agent.clock import Clock
from agent.markets import registered_markets
from agent.markets.market_record import Delivery, MarketRecord, Webhooks
from agent.systemd import CredentialError
from agent.web.request_checks import bounded_body
from agent.web.request_checks.refusal_log import Refusals

log = structlog.get_logger("gpubid.webhook")

REMEMBERED = 1_000


def senders() -> Sequence[tuple[MarketRecord, Webhooks]]:
    """Return the records of the markets that send webhooks.

    Raises:
        BrokenMarket: a package that brings a market is broken.
    """
    return [(record, record.webhooks) for record in registered_markets.installed().values() if record.webhooks]


def path(record: MarketRecord) -> str:
    """Return where a market's deliveries come."""
    return f"/webhooks/{record.name}"


class Deliveries:
    """Accepts deliveries of markets."""

    def __init__(
        self, secret: Callable[[], str], clock: Clock, wake: Callable[[], None], refusals: Refusals | None = None
    ) -> None:
        """Check signatures with the result of `secret`, and call `wake` for a new delivery."""
        self._secret = secret
        self._clock = clock
        self._wake = wake
        self._refusals = refusals or Refusals(clock.monotonic)
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for deliveries, one for each market that sends some."""
        return [web.post(path(record), functools.partial(self._take, webhooks)) for record, webhooks in senders()]

    async def _take(self, webhooks: Webhooks, request: web.Request) -> web.Response:
        raw = await bounded_body.body(request)
        try:
            secret = self._secret().encode()
        except CredentialError as error:
            # The sender tries again, and the secret may be readable by then.
            self._refusals.refused("no_webhook_secret", request.remote, str(error))
            return web.Response(status=503)
        event = webhooks.event(Delivery(raw, request.headers), secret, self._clock.now())
        if event is None:
            self._refusals.refused("bad_delivery", request.remote, "not signed with our secret, or too old")
            return web.Response(status=401)
        if (event.market, event.event_id) not in self._seen:
            self._seen[event.market, event.event_id] = None
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            log.info("webhook.taken", kind=event.kind, instance=event.instance_id)
            self._wake()
        return web.Response(status=204)
