"""The HTTP surface of this market, all on one port, and the way of a call through weather.

1. Before a call is answered, the market is moved to the clock's present. The answer itself awaits nothing.
2. Faults "before" leave the market untouched; faults "after" come when the call was applied. Field lies come last, in
   `api_calls.dressed`, and change only bytes. Streams of logs contain no lies.
3. Every call is written down with its status; 0 stands for a dropped connection.
"""

import collections
import re
from collections.abc import Mapping

from agent.simulator import api_calls
from agent.simulator.api_calls import TEXT, Reply
from agent.simulator.faults import Fault
from agent.simulator.http_wire import Answer, Asked
from agent.simulator.runpod.http import calls, graphql_api, logs, pod_scope, rest, rest_v1
from agent.simulator.runpod.http.calls import Call
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.model import Pod, Refused
from agent.simulator.runpod.sales_modes import Mode
from agent.simulator.simulated_clock import Clock

MOST_CALLS_KEPT = 200_000
_LOGS = re.compile(r"/v2/pods/([^/]+)/logs")
_FORBIDDEN_PAGE = b"<html><head><title>403 Forbidden</title></head><body><h1>403 Forbidden</h1>cloudflare</body></html>"


class RunpodApi:
    """Answers requests to one market."""

    def __init__(self, surface: Surface, clock: Clock) -> None:
        """Answer for one surface, by one clock."""
        self._surface = surface
        self._clock = clock
        self.calls: collections.deque[tuple[float, str, str, int]] = collections.deque(maxlen=MOST_CALLS_KEPT)

    async def answer(self, asked: Asked) -> Answer:
        """Answer one request."""
        surface, path = self._surface, asked.path.rstrip("/") or "/"
        surface.advance_to(self._clock.time())
        struck = surface.weather.struck(asked.method, path)
        if (slow := struck.get("slow")) is not None:
            await self._clock.sleep(slow.number("delay", 30.0))
            surface.advance_to(self._clock.time())
        call = Call.of(asked, path, surface.world.now, struck)
        reply = _before(surface, struck) or self._answer(call)
        if isinstance(reply, Pod):
            self.calls.append((call.now, call.method, path, 200))
            return logs.answer(surface, call, reply)
        reply = api_calls.after(struck, reply)
        self.calls.append((call.now, call.method, path, reply.status))
        place = api_calls.Place(call.method, path, path)
        return api_calls.dressed(reply, place, struck, surface.weather, calls.VOCABULARY, self._clock.time())

    def _answer(self, call: Call) -> Reply | Pod:
        """Answer a call. A pod as the result means the stream of its log."""
        surface = self._surface
        if (refused := self._challenge(call)) is not None:
            return refused
        if (refused := surface.limits.pace(call.now)) is not None:
            return refused
        reply = self._routed(call)
        if isinstance(reply, Reply):
            reply.headers = {**surface.limits.headers(call.now), **(reply.headers or {})}
        return reply

    def _challenge(self, call: Call) -> Reply | None:
        """Answer a call that its key does not allow."""
        # Only GraphQL answers a call without a key, and only about its catalogue. A wrong key is refused everywhere.
        if call.key == self._surface.key or (call.key is None and call.path == "/graphql"):
            return None
        pod_id = pod_scope.owner(self._surface, call.key)
        if pod_id is None:
            return calls.problem(401, "The bearer token is missing or invalid.")
        return None if pod_scope.allows(call, pod_id) else calls.problem(403, "This key is for one pod.")

    def _routed(self, call: Call) -> Reply | Pod:
        if call.path == "/graphql":
            if self._surface.world.mode.includes(Mode.GRAPHQL_GONE):
                return calls.problem(410, "The GraphQL API has been retired. Use https://api.runpod.io/v2.")
            return graphql_api.answer(self._surface, call)
        if call.path.startswith("/v1/"):
            return rest_v1.answer(self._surface, call)
        return self._rest(call)

    def _rest(self, call: Call) -> Reply | Pod:
        match = _LOGS.fullmatch(call.path)
        if match is None or call.method != "GET":
            return rest.answer(self._surface, call)
        try:
            return self._surface.pod(call, match.group(1))
        except Refused as refused:
            return calls.problem(404, refused.sentence)


def _refusal(struck: Mapping[str, Fault]) -> Reply | None:
    if "html_403" in struck:
        return Reply(_FORBIDDEN_PAGE, 403, "text/html")
    if "session_expired" in struck:
        return Reply(b"Unauthorized", 401, TEXT)
    return calls.problem(422, "Request validation failed.") if "invalid_request" in struck else None


def _before(surface: Surface, struck: Mapping[str, Fault]) -> Reply | None:
    if not struck:
        return None
    if (refusal := _refusal(struck)) is not None:
        return refusal
    if (fault := struck.get("server_error_before")) is not None:
        return api_calls.server_error(fault)
    if "throttle_text" in struck:
        return Reply(b"Too Many Requests", 429, TEXT)
    if (fault := struck.get("throttle_json")) is not None:
        return surface.limits.refuse(surface.world.now, fault.number("retry_after", 5.0))
    if (fault := struck.get("throttle_retry_after")) is not None:
        reply = surface.limits.refuse(surface.world.now, 0.0)
        reply.headers = {**(reply.headers or {}), "Retry-After": fault.text("retry_after", 5.0)}
        return reply
    return api_calls.dropped_before(struck)
