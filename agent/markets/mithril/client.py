"""The market's endpoints, one method each: the request goes out, the answer comes back checked.

Invariants:
1. Reads return a body or raise. Writes return the market's positive word, or raise the error that its answer proves.
2. No order is sent twice, above all no new bid: the market has no idempotency key for bids.
3. A refusal for too many calls closes its lane until the time that the market named, at most a minute.
4. A list of statuses is sent as one text with commas, as the document describes it and the vendor's program sends it.
   Where each status of its own is wanted, the market refuses the text. The other way round it would read the last
   status alone, and machines that run would be missing.
"""

import urllib.parse
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from agent import clock as clocks
from agent.markets import market_errors, pace, transport
from agent.markets.mithril import parse, refusals
from agent.markets.mithril.refusals import Route

PAGE_ROWS = 100
"""The most rows on one page."""
_STATUSES = "status_in"

LANES: Mapping[str, pace.Lane] = {
    # The market publishes no numbers. Assumed: a call a second for prices and for histories, and two for bids, since a
    # kill of a hundred bids must not wait for minutes.
    "v2": pace.Lane(60.0, burst=120, penalty=15.0),
    "prices": pace.Lane(60.0, burst=60, penalty=15.0),
    "history": pace.Lane(60.0, burst=60, penalty=15.0),
}


class MithrilClient:
    """Knows paths, bodies and lanes; other modules interpret the answers."""

    def __init__(self, link: transport.Transport, lanes: pace.Pace, clock: clocks.Clock, project: str = "") -> None:
        self._link = link
        self._pace = lanes
        self._clock = clock
        self._projects: tuple[str, ...] = (project,) if project else ()
        self._repeats_statuses = False

    async def projects(self) -> Sequence[str]:
        """Return the ids of the projects to list: the operator's, else all projects of the key.

        Raises: as a read, and Malformed if the key has none: nothing would be listed then.
        """
        if not self._projects:
            found = tuple(parse.projects((await self._read("v2", "/v2/projects")).body))
            if not found:
                raise market_errors.Malformed("mithril shows no project of the key; set [markets.mithril] project.")
            self._projects = found
        return self._projects

    async def project(self) -> str:
        """Return the id of the project to order in: as the operator set it, else the only one of the key.

        Raises: as a read, and Malformed if the key has several.
        """
        found = await self.projects()
        if len(found) != 1:
            sentence = f"The key has {len(found)} projects at mithril: set [markets.mithril] project to one of them."
            raise market_errors.Malformed(sentence)
        return found[0]

    async def me(self) -> transport.Reply:
        """Return the owner of the key, with the headers of the answer."""
        return await self._read("v2", "/v2/me")

    async def instance_types(self) -> bytes:
        """Return every instance type."""
        return (await self._read("prices", "/v2/instance-types")).body

    async def availability(self) -> bytes:
        """Return every pool that has an auction."""
        return (await self._read("prices", "/v2/spot/availability")).body

    async def price(self, instance_type: str, region: str) -> bytes:
        """Return the present prices of one machine in a pool. Raises: NotFound besides what a read raises."""
        asked = {"instance_type": instance_type, "region": region}
        return (await self._read("prices", "/v2/pricing/current", asked, is_of_one=True)).body

    async def quotas(self) -> bytes:
        """Return the quotas of the project to order in."""
        return (await self._read("v2", "/v2/quotas", {"project": await self.project()})).body

    async def bids(self, project: str, cursor: str = "", name: str = "") -> bytes:
        """Return a page of a project's bids, the oldest first; `name` narrows it to the bids of that name."""
        asked = {"project": project, "limit": str(PAGE_ROWS), "sort_by": "created_at", "sort_dir": "asc"}
        asked |= {"name": name} if name else {}
        return (await self._read("v2", "/v2/spot/bids", asked, cursor=cursor)).body

    async def bid(self, bid_fid: str) -> bytes:
        """Return one bid."""
        return (await self._read("v2", _path(bid_fid), is_of_one=True)).body

    async def machines(self, project: str, statuses: Sequence[str], cursor: str = "", bid_fid: str = "") -> bytes:
        """Return a page of a project's machines in some statuses; `bid_fid` narrows it to those of a bid."""
        asked = [("project", project), ("limit", str(PAGE_ROWS))]
        asked += [("bid_fid_in", bid_fid)] if bid_fid else []
        asked += [(_STATUSES, text) for text in (statuses if self._repeats_statuses else [",".join(statuses)])]
        try:
            return (await self._read("v2", "/v2/instances", asked, cursor=cursor)).body
        except market_errors.Malformed as refusal:
            if self._repeats_statuses or _STATUSES not in str(refusal):
                raise
        self._repeats_statuses = True
        return await self.machines(project, statuses, cursor, bid_fid)

    async def paid(self, bid_fid: str, since: datetime | None = None, cursor: str = "") -> bytes:
        """Return a page of the prices that the machines of a bid paid, by period."""
        asked = {"project": await self.project(), "bid_fid": bid_fid, "limit": str(PAGE_ROWS)}
        asked |= {"start_time": _stamp(since)} if since is not None else {}
        return (await self._read("history", "/v2/instances/pricing/history", asked, cursor=cursor)).body

    async def statuses(self, bid_fid: str) -> bytes:
        """Return the statuses that the machines of a bid went through."""
        asked = {"project": await self.project(), "bid_fid": bid_fid, "limit": str(PAGE_ROWS)}
        return (await self._read("history", "/v2/instances/status/history", asked)).body

    async def history(self, bid_fid: str) -> bytes:
        """Return the events of a bid."""
        return (await self._read("history", f"{_path(bid_fid)}/history", is_of_one=True)).body

    async def place(self, body: Mapping[str, Any]) -> bytes:
        """Place a bid, once."""
        return await self._sent(Route.PLACE, transport.Call("v2", "POST", "/v2/spot/bids", msgspec.json.encode(body)))

    async def change(self, bid_fid: str, body: Mapping[str, Any], *, is_urgent: bool = False) -> bytes:
        """Change a bid's limit price, or pause it, or let it take part in auctions again."""
        call = transport.Call("v2", "PATCH", _path(bid_fid), msgspec.json.encode(body), is_urgent)
        return await self._sent(Route.CHANGE, call)

    async def cancel(self, bid_fid: str) -> bytes:
        """End a bid and its machine."""
        return await self._sent(Route.CHANGE, transport.Call("v2", "DELETE", _path(bid_fid), is_urgent=True))

    def last_date(self) -> str:
        """Return the Date of the last answer, also of a refusal; an empty text before the first."""
        return self._link.last_date

    async def close(self) -> None:
        """Close connections."""
        await self._link.close()

    async def _read(
        self,
        lane: str,
        path: str,
        asked: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        *,
        cursor: str = "",
        is_of_one: bool = False,
    ) -> transport.Reply:
        pairs = [*(asked.items() if isinstance(asked, Mapping) else asked)]
        pairs += [("next_cursor", cursor)] if cursor else []
        question = f"?{urllib.parse.urlencode(pairs)}" if pairs else ""
        reply = await self._link.read(transport.Call(lane, "GET", f"{path}{question}"))
        self._refuse_throttled(lane, reply)
        refusals.check_read(reply, is_of_one=is_of_one)
        return reply

    async def _sent(self, route: Route, call: transport.Call) -> bytes:
        reply = await self._link.write(call)
        self._refuse_throttled(call.lane, reply, call.door)
        return refusals.check_write(route, reply)

    def _refuse_throttled(self, lane: str, reply: transport.Reply, door: str = "") -> None:
        if refusals.is_throttled(reply):
            until = self._pace.close(lane, refusals.reopening(reply, self._clock.now()), door=door)
            raise market_errors.Throttled(f"mithril was called too often; wait until {until:%H:%M:%S} UTC.", until)


def _path(bid_fid: str) -> str:
    return f"/v2/spot/bids/{urllib.parse.quote(bid_fid, safe='')}"


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
