"""Mithril before a bare server: the answers of a small project there, and a market of ours that asks it."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.tenure import Tenure
from agent.markets.mithril import market
from agent.markets.port import Terms
from tests.markets.scene import KEY, OFFER
from tests.markets.wire import Answers, Says, Seen, Wire, serving

PAYLOADS = Path(__file__).parent / "payloads" / "mithril"
PROJECT, BID = "proj_1", "bid_7Qk"
NAME = "gpubid-0123456789ab-0-0123456789abcdef"
HOST = "pool/us-central3-a/it_a100x1"
OFFERED = msgspec.structs.replace(
    OFFER, market="mithril", offer_id="it_a100x1@us-central3-a", host_id=HOST, ask=None, floor=money.per_hour(1)
)
ORDER = Terms(Tenure.INTERRUPTIBLE, money.per_hour("2.50"), 40.0, "ubuntu:22.04")
DISK_MICROS = 100_000
LISTS = ("/v2/spot/bids", "/v2/instances")


def payload(name: str) -> Any:
    return json.loads((PAYLOADS / f"{name}.json").read_text())


def bid(**changes: Any) -> dict[str, Any]:
    return payload("bids")["data"][0] | changes


def machine(**changes: Any) -> dict[str, Any]:
    return payload("instances")["data"][0] | changes


def page(*rows: Any, cursor: Any = None) -> Says:
    return Says({"data": list(rows), "next_cursor": cursor})


def refused(status: int, detail: Any, **headers: str) -> Says:
    return Says({"detail": detail}, status, headers)


def project(seen: Seen) -> Says:
    """Answer as a project with the bid, machine, prices and histories of the payloads."""
    if seen.path == "/v2/pricing/current":
        shown = payload("prices").get(f"{seen.query['instance_type']}@{seen.query['region']}")
        return Says(shown) if shown is not None else refused(404, "No current price")
    files = {
        "/v2/me": "me",
        "/v2/instance-types": "instance_types",
        "/v2/spot/availability": "availability",
        "/v2/instances": "instances",
        "/v2/instances/pricing/history": "paid",
        f"/v2/spot/bids/{BID}/history": "history",
    }
    if seen.path in files:
        return Says(payload(files[seen.path]), headers={"Date": "Thu, 05 Nov 2026 22:00:00 GMT"})
    if seen.path == "/v2/spot/bids":
        return Says(bid(status="Open", instances=[]), 201) if seen.method == "POST" else Says(payload("bids"))
    if seen.path == f"/v2/spot/bids/{BID}":
        return _one(seen)
    return refused(404, "Bid not found")


def _one(seen: Seen) -> Says:
    if seen.method == "DELETE":
        return Says(b"", 204)
    if seen.method != "PATCH":
        return Says(bid())
    paused = seen.json.get("paused")
    status = "Allocated" if paused is None else "Paused" if paused else "Open"
    return Says(bid(status=status, limit_price=seen.json.get("limit_price", "$2.50")))


def listing(*bids: Any, machines: Any = (), histories: Any = None) -> Answers:
    """Answer as that project with these bids and machines."""

    def answers(seen: Seen) -> Says:
        if seen.method == "GET" and seen.path in LISTS:
            return page(*(bids if seen.path == LISTS[0] else machines))
        if histories is not None and seen.path == "/v2/instances/pricing/history":
            return Says(histories)
        return project(seen)

    return answers


@contextlib.asynccontextmanager
async def mithril_saying(
    answers: Answers | Says,
    clock: SteppedClock,
    *,
    disk_micros: int | None = DISK_MICROS,
    project: str = PROJECT,
    **options: Any,
) -> AsyncIterator[tuple[market.MithrilMarket, Wire]]:
    terrain = market.Terrain(project, disk_micros)
    async with serving(answers) as wire:
        ours = market.connect(wire.url, lambda: KEY, clock, lambda: 0.5, terrain=terrain, **options)
        try:
            yield ours, wire
        finally:
            await ours.close()
