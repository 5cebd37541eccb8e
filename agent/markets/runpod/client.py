"""The market's endpoints, one method each: the request goes out, the answer comes back checked.

Invariants:
1. Reads return a body or raise. Writes return the market's positive word, or raise the error that its answer proves.
2. A refusal for too many calls closes its lane until the time that the market named, at most a minute. All of REST v2
   is one lane, as the market counts it by key. The error of a search has the market's own time.
"""

import urllib.parse
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from agent import clock as clocks
from agent.markets import market_errors, pace, transport
from agent.markets.runpod import graph, refusals
from agent.markets.runpod.refusals import Route

LANES: Mapping[str, pace.Lane] = {
    # The document's example limit is 60 a minute and 3,000 an hour; a person may use the same key.
    "v2": pace.Lane(60.0, burst=45, penalty=15.0),
    "logs": pace.Lane(2.0, penalty=15.0),
    # Limits of GraphQL were announced without numbers.
    "graphql": pace.Lane(60.0, burst=30, penalty=60.0),
}
SPARED_CALLS = 15
"""Calls a minute that searches leave to listings and orders, which have the same lane."""
MOST_LOG_BYTES = 2**20


class RunPodClient:
    """Knows paths, bodies and lanes; other modules interpret the answers."""

    def __init__(self, link: transport.Transport, lanes: pace.Pace, clock: clocks.Clock) -> None:
        self._link = link
        self._pace = lanes
        self._clock = clock

    async def catalogue(self, cloud: str, gpus: int) -> bytes:
        """Return the GPU types of a cloud, with the stock of pods of this many GPUs."""
        question = {"include": "AVAILABILITY", "product": "POD", "count": str(gpus), "cloud": cloud}
        path = f"/v2/catalog/gpus?{urllib.parse.urlencode(question)}"
        reply = await self._link.read(transport.Call("v2", "GET", path))
        self._refuse_throttled("v2", reply, is_search=True)
        refusals.check_read(reply)
        return reply.body

    def catalogue_delay(self, readings: int) -> float:
        """Return the seconds until the catalogue is read so often without a wait, with `SPARED_CALLS` left."""
        return self._pace.delay("v2", readings + SPARED_CALLS)

    async def pods(self, cursor: str = "") -> transport.Reply:
        """Return a page of the account's pods, the first one without a cursor, with the headers of the answer."""
        page = f"?{urllib.parse.urlencode({'cursor': cursor})}" if cursor else ""
        return await self._read("GET", f"/v2/pods{page}")

    async def pod(self, pod_id: str) -> bytes:
        """Return one pod."""
        return (await self._read("GET", f"/v2/pods/{_part(pod_id)}", is_of_pod=True)).body

    async def create(self, body: Mapping[str, Any]) -> bytes:
        """Rent a pod on demand."""
        return await self._write(Route.CREATE, "/v2/pods", body)

    async def act(self, pod_id: str, action: str, *, is_urgent: bool = False) -> bytes:
        """Ask for an action, "start", "stop" or "terminate"."""
        return await self._write(
            Route.ACTION, f"/v2/pods/{_part(pod_id)}/action", {"action": action}, is_urgent=is_urgent
        )

    async def remove(self, pod_id: str) -> bytes:
        """End a pod by the other route that does so."""
        path = f"/v2/pods/{_part(pod_id)}"
        return await self._sent(Route.ACTION, transport.Call("v2", "DELETE", path, is_urgent=True))

    async def network_volumes(self) -> bytes:
        """Return the account's network volumes."""
        return (await self._read("GET", "/v2/network-volumes")).body

    async def bill(self, since: datetime, until: datetime) -> bytes:
        """Return the bill by pod and day."""
        question = {"startTime": _stamp(since), "endTime": _stamp(until), "bucketSize": "day"}
        return (await self._read("GET", f"/v2/billing/pods?{urllib.parse.urlencode(question)}")).body

    async def logs(self, pod_id: str, lines: int) -> bytes:
        """Return the log stream's present content, from this many lines back."""
        question = urllib.parse.urlencode({"source": "container", "tail": str(lines)})
        call = transport.Call("logs", "GET", f"/v2/pods/{_part(pod_id)}/logs?{question}")
        reply = await self._link.tail(call, MOST_LOG_BYTES)
        self._refuse_throttled("logs", reply)
        return refusals.check_read(reply, is_of_pod=True)

    async def ask_graph(self, query: str, variables: Mapping[str, Any]) -> graph.Answered:
        """Return the answer to a GraphQL question; parts of its data may be missing.

        Raises: graph.Retired besides what a read raises.
        """
        reply = await self._link.read(transport.Call("graphql", "POST", "/graphql", graph.body(query, variables)))
        self._refuse_throttled("graphql", reply)
        return graph.answer(reply)

    async def mutate_graph(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Send a GraphQL mutation once and return its data.

        Raises: graph.Retired besides what a write raises.
        """
        reply = await self._link.write(transport.Call("graphql", "POST", "/graphql", graph.body(query, variables)))
        self._refuse_throttled("graphql", reply)
        return graph.done(reply)

    def last_date(self) -> str:
        """Return the Date of the last answer, also of a refusal; an empty text before the first."""
        return self._link.last_date

    async def close(self) -> None:
        """Close connections."""
        await self._link.close()

    async def _read(self, method: str, path: str, *, is_of_pod: bool = False) -> transport.Reply:
        reply = await self._link.read(transport.Call("v2", method, path))
        self._refuse_throttled("v2", reply)
        refusals.check_read(reply, is_of_pod=is_of_pod)
        return reply

    async def _write(self, route: Route, path: str, body: Mapping[str, Any], *, is_urgent: bool = False) -> bytes:
        return await self._sent(route, transport.Call("v2", "POST", path, msgspec.json.encode(body), is_urgent))

    async def _sent(self, route: Route, call: transport.Call) -> bytes:
        reply = await self._link.write(call)
        self._refuse_throttled("v2", reply, call.door)
        return refusals.check_write(route, reply)

    def _refuse_throttled(self, lane: str, reply: transport.Reply, door: str = "", *, is_search: bool = False) -> None:
        if not refusals.is_throttled(reply):
            return
        named = refusals.reopening(reply, self._clock.now())
        until = self._pace.close(lane, named, door=door)
        if is_search and named is not None:
            # A search may wait a day, and shares its lane with stops and listings, which must open before.
            until = min(named, self._clock.now() + pace.LONGEST_PENALTY)
        raise market_errors.Throttled(
            f"runpod was called too often on {lane!r}; wait until {until:%H:%M:%S} UTC.", until
        )


def _part(identifier: str) -> str:
    return urllib.parse.quote(identifier, safe="")


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
