"""The server's routes, one method each: the request goes out, the answer comes back checked.

Invariants:
1. Reads return a body or raise. Writes return the server's positive word, or raise the error that its answer proves.
2. No order is sent twice. Every route is a POST, also those that only read; reads alone are tried again.
3. The route of the server's own user is never asked: it answers with keys and the token.
"""

import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent import clock as clocks
from agent.markets import market_errors, pace, transport
from agent.markets.dstack import refusals

PAGE_RUNS = 100
"""The most runs on one page."""
PAGE_MACHINES = 500
MOST_OFFERS = 10_000
"""Rows of one plan, the most that the server gives. They are the cheapest: a dear card is beyond many cheap ones."""
EVENTS_OF = 4
"""Machines in one question for events: an answer has at most a hundred, and the first of each machine matters."""

LANES: Mapping[str, pace.Lane] = {
    # It is the operator's own server, which publishes no limits. Assumed: one plan a second, since it asks clouds.
    "plans": pace.Lane(60.0, burst=60, penalty=15.0),
    "runs": pace.Lane(60.0, burst=240, penalty=15.0),
}


class DstackClient:
    """Knows paths, bodies and lanes of one project; other modules interpret the answers."""

    def __init__(self, link: transport.Transport, lanes: pace.Pace, clock: clocks.Clock, project: str) -> None:
        self._link = link
        self._pace = lanes
        self._clock = clock
        self._project = urllib.parse.quote(project, safe="")
        self._name = project

    async def project(self) -> transport.Reply:
        """Return the project, with the headers of the answer."""
        return await self._read("runs", f"/api/projects/{self._project}/get", {})

    async def fleet(self, name: str) -> bytes:
        """Return a fleet. Raises: NotFound besides what a read raises."""
        return (await self._read("runs", self._of("fleets/get"), {"name": name})).body

    async def plan(self, run_spec: Mapping[str, Any], most: int = MOST_OFFERS) -> bytes:
        """Return a plan with at most so many offers, made for them alone."""
        body = {"run_spec": run_spec, "max_offers": most, "for_offers_only": True}
        return (await self._read("plans", self._of("runs/get_plan"), body)).body

    def plan_delay(self, plans: int) -> float:
        """Return the seconds until so many plans are asked for without a wait."""
        return self._pace.delay("plans", plans)

    async def runs(self, after: Mapping[str, str]) -> bytes:
        """Return a page of runs, the newest first, also those that have ended; `after` is the place to continue at."""
        body = {"project_name": self._name, "limit": PAGE_RUNS, "job_submissions_limit": 1, **after}
        return (await self._read("runs", "/api/runs/list", body)).body

    async def run(self, run_id: str) -> bytes:
        """Return one run. Raises: NotFound besides what a read raises."""
        return (await self._read("runs", self._of("runs/get"), {"id": run_id})).body

    async def machines(self, after: Mapping[str, str]) -> bytes:
        """Return a page of machines, the newest first, as `runs`."""
        body = {"project_names": [self._name], "limit": PAGE_MACHINES, **after}
        return (await self._read("runs", "/api/instances/list", body)).body

    async def events(self, machine_ids: Sequence[str]) -> bytes:
        """Return the first events of at most `EVENTS_OF` machines, the oldest first."""
        body = {"target_instances": list(machine_ids), "ascending": True, "limit": 100}
        return (await self._read("runs", "/api/events/list", body)).body

    async def log(self, run_name: str, submission_id: str, pieces: int) -> bytes:
        """Return the last pieces of a job's output, the newest first."""
        body = {"run_name": run_name, "job_submission_id": submission_id, "descending": True, "limit": pieces}
        return (await self._read("runs", self._of("logs/poll"), body)).body

    async def apply(self, run_spec: Mapping[str, Any]) -> bytes:
        """Submit a run, once."""
        body = {"plan": {"run_spec": run_spec, "current_resource": None}, "force": False}
        return await self._sent("runs/apply", body)

    async def stop(self, name: str, *, is_abort: bool) -> bytes:
        """Stop the active run of a name; without one the server says yes too. An abort does not wait for its work."""
        return await self._sent("runs/stop", {"runs_names": [name], "abort": is_abort}, is_urgent=True)

    async def delete(self, name: str) -> bytes:
        """Remove a finished run from the server's lists."""
        return await self._sent("runs/delete", {"runs_names": [name]})

    def last_date(self) -> str:
        """Return the Date of the last answer, also of a refusal; an empty text before the first."""
        return self._link.last_date

    async def close(self) -> None:
        """Close connections."""
        await self._link.close()

    def _of(self, route: str) -> str:
        return f"/api/project/{self._project}/{route}"

    async def _read(self, lane: str, path: str, body: Mapping[str, Any]) -> transport.Reply:
        reply = await self._link.read(transport.Call(lane, "POST", path, msgspec.json.encode(body)))
        self._refuse_throttled(lane, reply)
        refusals.check_read(reply)
        return reply

    async def _sent(self, route: str, body: Mapping[str, Any], *, is_urgent: bool = False) -> bytes:
        call = transport.Call("runs", "POST", self._of(route), msgspec.json.encode(body), is_urgent)
        reply = await self._link.write(call)
        self._refuse_throttled(call.lane, reply, call.door)
        return refusals.check_write(reply)

    def _refuse_throttled(self, lane: str, reply: transport.Reply, door: str = "") -> None:
        if refusals.is_throttled(reply):
            until = self._pace.close(lane, refusals.reopening(reply, self._clock.now()), door=door)
            raise market_errors.Throttled(f"dstack was called too often; wait until {until:%H:%M:%S} UTC.", until)
