"""Vast.ai's record: what the rest of the program knows about this market."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from agent.markets.market_record import (
    Delivery,
    InstanceKey,
    KeyScope,
    MarketOptions,
    MarketRecord,
    SavedOffer,
    SavedSearches,
    StopRequest,
    Webhooks,
)
from agent.markets.vast.rules import MOST_SCRIPT, RULES

if TYPE_CHECKING:
    from agent.clock import Clock
    from agent.domain.market.interruption import MarketEvent
    from agent.markets.http_exchange import Exchange
    from agent.markets.transport import Key
    from agent.markets.vast.market import VastMarket

NEEDED = ("instance_read", "instance_write", "user_read", "billing_read", "misc")
"""The categories of the vendor's permissions that our calls fall into."""


def connect(
    url: str,
    key: "Key",
    clock: "Clock",
    jitter: Callable[[], float],
    /,
    *,
    options: MarketOptions | None = None,
    through: "Exchange | None" = None,
) -> "VastMarket":
    """Return the market at `url`; it has no keys of its own."""
    from agent.markets.vast import market

    del options
    return market.connect(url, key, clock, jitter, through=through)


async def is_wide(url: str, key: "Key", clock: "Clock", jitter: Callable[[], float], /) -> bool | None:
    """Return whether a key may do more than we need; None: not known. Raises: Throttled, Unavailable."""
    from agent.markets.vast import scope

    return await scope.is_wide(url, key, clock, jitter)


def check_query(text: str) -> None:
    """Refuse a query that the grammar of `vastai search offers` does not know. Raises: ValueError."""
    from agent.markets.vast import query

    query.check(text)


def saved_offers(document: object) -> Sequence[SavedOffer]:
    """Return the offers in the JSON of a saved answer. Raises: UnreadableAnswer."""
    from agent.markets.vast import search

    return search.saved(document)


async def register_webhook(url: str, base: str, key: "Key", clock: "Clock") -> str:
    """Register our address at the market, and return the secret of its signatures. Raises: MarketError."""
    from agent.markets.vast import webhooks

    return await webhooks.register(url, base, key, clock)


def webhook_event(delivery: Delivery, secret: bytes, now: datetime) -> "MarketEvent | None":
    """Return the event of a delivery, or None unless it is signed with our secret and fresh."""
    from agent.markets.vast import events

    stamp, signature = (delivery.headers.get(name, "") for name in (events.TIME, events.SIGNATURE))
    return events.webhook(delivery.body, stamp, signature, secret, now)


def webhook_trial(secret: str, now: datetime) -> Delivery:
    """Return a delivery as the market would sign it, of a test event."""
    from agent.markets.vast import events

    raw = events.trial(now)
    return Delivery(raw, events.signed(raw, now, secret))


_INSTANCE = "/api/v0/instances/{instance}/"
INSTANCE_KEY = InstanceKey(
    id_variable="CONTAINER_ID",
    key_variable="CONTAINER_API_KEY",
    stop=StopRequest("PUT", _INSTANCE, {"state": "stopped"}),
    end=StopRequest("DELETE", _INSTANCE),
)
"""The vendor documents the rights of this key."""

RECORD = MarketRecord(
    name="vast",
    title="Vast.ai",
    url="https://console.vast.ai",
    documentation="https://docs.vast.ai",
    rules=RULES,
    connect=connect,
    shows_datacenter=True,
    key_scope=KeyScope(is_wide, NEEDED),
    check_query=check_query,
    most_script=MOST_SCRIPT,
    keys_at_start="written by the start script of the container",
    instance_key=INSTANCE_KEY,
    saved_searches=SavedSearches("vastai search offers --raw", saved_offers),
    registers_keys=True,
    webhooks=Webhooks(register_webhook, webhook_event, webhook_trial),
)
