"""Webhooks of the simulated Vast.ai: signed deliveries over real HTTP, tried again, tested and given new secrets."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.support.contracts import evicted
from tests.support.market import Market

HOOK = {"name": "x", "webhook_url": "https://hooks.example.com/in?a=1", "event_types": ["client:outbid"]}


class Receiver:
    """A small server that keeps every delivery and gives the set answer."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.taken.append((request.path_qs, dict(request.headers), await request.read()))
        return web.Response(status=self.answers.pop(0) if self.answers else 204)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    runner = web.ServerRunner(web.Server(made.handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


async def led(market: Market, receiver: Receiver) -> dict[str, Any]:
    """Register the webhook and let its name lead to the receiver."""
    answer = await market.control("POST", "/webhooks", {"name": "hooks.example.com", "url": receiver.url})
    assert answer.status == 200, answer.raw
    made = await market.call("POST", "/webhooks/", HOOK)
    return dict(made.body["webhook"])


def is_signed(headers: dict[str, str], raw: bytes, secret: str) -> bool:
    mark = hmac.new(secret.encode(), headers["X-Vast-Timestamp"].encode() + b"." + raw, hashlib.sha256).hexdigest()
    return headers["X-Vast-Signature-256"] == f"sha256={mark}"


async def test_an_outbid_is_delivered_once_signed_and_in_the_vendors_words(market: Market, receiver: Receiver) -> None:
    hook = await led(market, receiver)
    _, row, _, _ = await evicted(market, on_demand=False)
    ((path, headers, raw),) = receiver.taken
    assert path == "/in?a=1"
    assert headers["Host"] == "hooks.example.com"
    assert headers["Content-Type"] == "application/json"
    assert (headers["X-Vast-Event-Id"], headers["X-Vast-Delivery-Attempt"]) == (row["event_id"], "1")
    assert is_signed(headers, raw, hook["webhook_secret"])
    body = json.loads(raw)
    assert body == {
        "event_id": row["event_id"],
        "user_id": hook["user_id"],
        "notif_type": "outbid",
        "subject": f"Your Interruptible Instance #{row['associated_id']['instance_id']} Has Been Outbid",
        "message": row["message"],
        "data": None,
        "data_truncated": False,
        "timestamp": row["created_at"],
    }
    told = row["associated_id"]
    figures = f"Your bid was ${told['your_bid']:.2f}/hr and the current minimum bid is ${told['new_min_bid']:.2f}/hr."
    assert figures in body["message"]
    await market.advance(3600.0)
    assert len(receiver.taken) == 1


async def test_what_was_not_taken_comes_again_with_the_same_id(market: Market, receiver: Receiver) -> None:
    hook = await led(market, receiver)
    receiver.answers = [503, 429, 204]
    await evicted(market, on_demand=True)
    for _ in range(5):
        await market.advance(700.0)
    assert [headers["X-Vast-Delivery-Attempt"] for _, headers, _ in receiver.taken] == ["1", "2", "3"]
    assert len({raw for _, _, raw in receiver.taken}) == 1
    assert all(is_signed(headers, raw, hook["webhook_secret"]) for _, headers, raw in receiver.taken)
    assert [row["status"] for row in (await market.truth())["deliveries"]] == [503, 429, 204]


@pytest.mark.parametrize("status", [302, 400, 401, 404])
async def test_a_redirect_or_a_refusal_is_the_last_word(market: Market, receiver: Receiver, status: int) -> None:
    await led(market, receiver)
    receiver.answers = [status]
    await evicted(market, on_demand=False)
    for _ in range(4):
        await market.advance(1000.0)
    assert [row["status"] for row in (await market.truth())["deliveries"]] == [status]


async def test_a_name_that_leads_nowhere_cannot_be_reached(market: Market) -> None:
    await market.call("POST", "/webhooks/", HOOK)
    await evicted(market, on_demand=False)
    await market.advance(1.0)
    assert [row["status"] for row in (await market.truth())["deliveries"]] == [0, 0]


async def test_only_what_is_subscribed_is_delivered(market: Market, receiver: Receiver) -> None:
    await led(market, receiver)
    await market.call("PUT", "/webhooks/1/", {"event_types": ["client:instance_deleted"]})
    record, _, _, _ = await evicted(market, on_demand=False)
    await market.call("DELETE", f"/instances/{record['id']}/", {})
    await market.advance(1.0)
    assert [b"instance_deleted" in raw for _, _, raw in receiver.taken] == [True]


async def test_the_test_route_delivers_once_without_trying_again(market: Market, receiver: Receiver) -> None:
    hook = await led(market, receiver)
    receiver.answers = [500]
    answer = await market.call("POST", f"/webhooks/{hook['id']}/test/", {})
    assert answer.body == {"success": True, "msg": "Test webhook delivered"}
    await market.advance(5000.0)
    ((_, headers, raw),) = receiver.taken
    assert is_signed(headers, raw, hook["webhook_secret"])
    body = json.loads(raw)
    assert (body["notif_type"], body["data"], body["data_truncated"]) == ("webhook_test", None, False)
    assert (await market.call("POST", "/webhooks/99/test/", {})).status == 404


async def test_a_rotated_secret_signs_from_then_on(market: Market, receiver: Receiver) -> None:
    hook = await led(market, receiver)
    rotated = (await market.call("POST", f"/webhooks/{hook['id']}/rotate-secret/", {})).body["webhook"]
    assert rotated["webhook_secret"] != hook["webhook_secret"]
    await market.call("POST", f"/webhooks/{hook['id']}/test/", {})
    await market.advance(1.0)
    ((_, headers, raw),) = receiver.taken
    assert is_signed(headers, raw, rotated["webhook_secret"])
    assert not is_signed(headers, raw, hook["webhook_secret"])
    assert "webhook_secret" not in (await market.call("GET", "/webhooks/")).body["webhooks"][0]
    assert (await market.call("POST", "/webhooks/99/rotate-secret/", {})).status == 404


async def test_webhooks_lead_to_loopback_only(market: Market) -> None:
    for url in ("http://192.0.2.1:80", "https://127.0.0.1:80", "http://127.0.0.1:80@example.com", 5):
        assert (await market.control("POST", "/webhooks", {"name": "a", "url": url})).status == 400
