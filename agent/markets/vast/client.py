"""The market's endpoints, one method each: the request goes out, the answer comes back checked.

Invariants:
1. A read returns the body of a good answer, or raises. A write returns the market's confirmation, or raises the error
   that the answer proves.
2. A refusal for too many calls closes its lane until the time that the market named. That is at most a day where the
   market rations by the day, else at most a minute.
"""

import urllib.parse
from collections.abc import Mapping
from typing import Any

import msgspec

from agent import clock as clocks
from agent.markets import market_errors, pace, transport
from agent.markets.vast import refusals
from agent.markets.vast.refusals import Answer, Route

PAGE_ROWS = 25
"""The most instances on one page."""
CHARGE_ROWS = 100
_NO_SUCH_ROUTE = frozenset({404, 410})

LANES: Mapping[str, pace.Lane] = {
    # Published thresholds, read as seconds between calls. Ten searches a minute are allowed; one is left to a person.
    "search": pace.Lane(60.0, burst=9, penalty=10.0, longest=pace.LONGEST_PENALTY),
    "list": pace.Lane(1.0, penalty=5.0),
    "one": pace.Lane(2.0, penalty=5.0),
    "create": pace.Lane(4.5, penalty=12.0),
    "change_bid": pace.Lane(5.5, penalty=11.0),
    "state": pace.Lane(1.0, penalty=5.0),
    "destroy": pace.Lane(3.0, penalty=5.0),
    "charges": pace.Lane(1.0, penalty=5.0, longest=pace.LONGEST_PENALTY),
    "account": pace.Lane(0.0, penalty=5.0),
    "inbox": pace.Lane(0.0, penalty=5.0),
    "rises": pace.Lane(0.0, penalty=60.0, longest=pace.LONGEST_PENALTY),
    "logs": pace.Lane(2.0, penalty=10.0),
    "keys": pace.Lane(2.0, penalty=10.0),
    "names": pace.Lane(0.0, penalty=60.0, longest=pace.LONGEST_PENALTY),
}


class VastClient:
    """Sends requests to the paths of Vast.ai, each in its lane. Other modules interpret the answers."""

    def __init__(self, link: transport.Transport, lanes: pace.Pace, rows: pace.RowBudget, clock: clocks.Clock) -> None:
        self._link = link
        self._pace = lanes
        self._rows = rows
        self._clock = clock

    async def search(self, question: Mapping[str, Any]) -> bytes:
        """Return a sample of the offers that match."""
        return (await self._read("search", "POST", "/api/v0/bundles/", question)).body

    def search_delay(self, searches: int) -> float:
        """Return the seconds until so many searches leave without a wait."""
        return self._pace.delay("search", searches)

    async def page(self, token: str = "") -> bytes:
        """Return one page of the listing; without a token the first one."""
        question = {"select_filters": "{}", "order_by": '[{"col":"id","dir":"asc"}]', "limit": str(PAGE_ROWS)}
        if token:
            question["after_token"] = token
        return (await self._read("list", "GET", f"/api/v1/instances/?{urllib.parse.urlencode(question)}")).body

    async def one(self, instance_id: str) -> bytes:
        """Return the record of one instance."""
        path = f"/api/v0/instances/{_part(instance_id)}/?owner=me"
        return (await self._read("one", "GET", path, is_of_instance=True)).body

    async def account(self) -> transport.Reply:
        """Return the account's record, with the headers of the answer."""
        return await self._read("account", "GET", "/api/v0/users/current")

    async def inbox(self) -> bytes | None:
        """Return the last notifications, or None when the market no longer has an inbox."""
        reply = await self._link.read(transport.Call("inbox", "GET", "/api/v0/notifications/inbox/"))
        self._refuse_throttled("inbox", reply)
        # An unknown key is also answered 404, but with its code.
        if reply.status in _NO_SUCH_ROUTE and refusals.answer(reply).code != refusals.AUTH:
            return None
        return refusals.check_read(reply)

    async def pending_rises(self) -> bytes | None:
        """Return the price increases that hosts have asked for, or None when the market has no such list."""
        reply = await self._link.read(transport.Call("rises", "GET", "/api/v0/instances/pending-price-increases/"))
        self._refuse_throttled("rises", reply)
        if reply.status in _NO_SUCH_ROUTE and refusals.answer(reply).code != refusals.AUTH:
            return None
        return refusals.check_read(reply)

    async def gpu_names(self) -> bytes:
        """Return the market's spellings of its models."""
        return (await self._read("names", "GET", "/api/v0/gpu_names/unique/")).body

    async def charges(self, since: int, until: int, token: str = "") -> bytes:
        """Return one page of the bill between two instants in epoch seconds."""
        span = msgspec.json.encode({"day": {"gte": since, "lte": until}}).decode()
        question = {"select_filters": span, "latest_first": "false", "limit": str(CHARGE_ROWS), "format": "table"}
        if token:
            question["after_token"] = token
        return (await self._read("charges", "GET", f"/api/v0/charges/?{urllib.parse.urlencode(question)}")).body

    async def create(self, offer_id: str, body: Mapping[str, Any]) -> Answer:
        """Rent an offer."""
        return await self._write(Route.CREATE, "create", "PUT", f"/api/v0/asks/{_part(offer_id)}/", body)

    async def change_bid(self, instance_id: str, dollars: float) -> Answer:
        """Change the present bid."""
        path = f"/api/v0/instances/bid_price/{_part(instance_id)}/"
        return await self._write(Route.REBID, "change_bid", "PUT", path, {"client_id": "me", "price": dollars})

    async def set_state(self, instance_id: str, wanted: str, *, is_urgent: bool = False) -> Answer:
        """Ask for a state, "running" or "stopped"."""
        path = f"/api/v0/instances/{_part(instance_id)}/"
        return await self._write(Route.STATE, "state", "PUT", path, {"state": wanted}, is_urgent=is_urgent)

    async def destroy(self, instance_id: str) -> Answer:
        """End an instance for good."""
        path = f"/api/v0/instances/{_part(instance_id)}/"
        return await self._write(Route.DESTROY, "destroy", "DELETE", path, {}, is_urgent=True)

    async def instance_keys(self, instance_id: str) -> bytes:
        """Return the ssh keys of an instance."""
        path = f"/api/v0/instances/{_part(instance_id)}/ssh/"
        return (await self._read("keys", "GET", path, is_of_instance=True)).body

    async def add_key(self, instance_id: str, key: str) -> Answer:
        """Attach an ssh key to an instance."""
        path = f"/api/v0/instances/{_part(instance_id)}/ssh/"
        return await self._write(Route.KEYS, "keys", "POST", path, {"ssh_key": key})

    async def request_logs(self, instance_id: str, lines: int) -> bytes:
        """Ask for the last lines of a container. The answer has the address where the file will be."""
        path = f"/api/v0/instances/request_logs/{_part(instance_id)}/"
        return (await self._read("logs", "PUT", path, {"tail": str(lines)}, is_of_instance=True)).body

    async def file(self, url: str, most_bytes: int) -> bytes | None:
        """Return a file of the market, or None while it does not exist."""
        reply = await self._link.fetch(url, most_bytes)
        return reply.body if reply.is_ok else None

    def last_date(self) -> str:
        """Return the Date of the last answer, also of a refusal; an empty text before the first."""
        return self._link.last_date

    async def close(self) -> None:
        """Close connections."""
        await self._link.close()

    async def _read(
        self,
        lane: str,
        method: str,
        path: str,
        question: Mapping[str, Any] | None = None,
        *,
        is_of_instance: bool = False,
    ) -> transport.Reply:
        body = None if question is None else msgspec.json.encode(question)
        reply = await self._link.read(transport.Call(lane, method, path, body))
        self._refuse_throttled(lane, reply)
        refusals.check_read(reply, is_of_instance=is_of_instance)
        return reply

    async def _write(
        self, route: Route, lane: str, method: str, path: str, body: Mapping[str, Any], *, is_urgent: bool = False
    ) -> Answer:
        call = transport.Call(lane, method, path, msgspec.json.encode(body), is_urgent)
        reply = await self._link.write(call)
        self._refuse_throttled(lane, reply, call.door)
        return refusals.check_write(route, reply)

    def _refuse_throttled(self, lane: str, reply: transport.Reply, door: str = "") -> None:
        if not refusals.is_throttled(reply):
            return
        until = refusals.reopening(reply, self._clock.now())
        if refusals.answer(reply).code == refusals.QUOTA:
            until = until or self._rows.midnight()
            self._rows.spend_all(until)
            raise market_errors.Throttled(
                f"vast's daily quota of search rows is used up until {until:%H:%M} UTC.", until
            )
        until = self._pace.close(lane, until, door=door)
        raise market_errors.Throttled(f"vast was called too often on {lane!r}; wait until {until:%H:%M:%S} UTC.", until)


def _part(identifier: str) -> str:
    return urllib.parse.quote(identifier, safe="")
