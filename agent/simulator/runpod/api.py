"""The HTTP surface of this market, all on one port, and the way of a call through weather.

1. Before a call is answered the market is moved to the clock's present; the answer itself awaits nothing.
2. Faults "before" leave the market untouched, faults "after" come when the call was applied.
3. Every call is written down with its status; 0 stands for a dropped connection.
"""

import collections
import email.utils
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from agent.simulator.clock import Clock
from agent.simulator.faults import Fault
from agent.simulator.runpod import calls, graphql_api, logs, rest, rest_v1
from agent.simulator.runpod.calls import Call
from agent.simulator.runpod.model import Pod, Refused
from agent.simulator.runpod.modes import Mode
from agent.simulator.runpod.surface import Surface
from agent.simulator.vast_calls import TEXT, Reply

MOST_CALLS_KEPT = 200_000
_LOGS = re.compile(r"/v2/pods/([^/]+)/logs")
_FORBIDDEN_PAGE = b"<html><head><title>403 Forbidden</title></head><body><h1>403 Forbidden</h1>cloudflare</body></html>"
DROPPED = Reply(b"", 0)


class RunpodApi:
    """Answer requests to one market."""

    def __init__(self, surface: Surface, clock: Clock) -> None:
        """Stand between a surface and a clock."""
        self._surface = surface
        self._clock = clock
        self.calls: collections.deque[tuple[float, str, str, int]] = collections.deque(maxlen=MOST_CALLS_KEPT)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        body = await request.read()
        surface, path = self._surface, request.path.rstrip("/") or "/"
        surface.advance_to(self._clock.time())
        struck = surface.weather.struck(request.method, path)
        if (slow := struck.get("slow")) is not None:
            await self._clock.sleep(slow.number("delay", 30.0))
            surface.advance_to(self._clock.time())
        call = _call(request, path, body, surface.world.now, struck)
        reply = _before(surface, struck) or self._answer(call)
        if isinstance(reply, Pod):
            self.calls.append((call.now, call.method, path, 200))
            return await logs.stream(surface, call, reply, request)
        reply = _after(struck, reply)
        self.calls.append((call.now, call.method, path, reply.status))
        return await self._send(request, reply, struck)

    def _answer(self, call: Call) -> Reply | Pod:
        """Answer a call; a pod stands for the stream of its log."""
        surface = self._surface
        # Only GraphQL answers who has no key, and only its catalogue; a wrong key it refuses like the others.
        if call.key != surface.key and (call.key is not None or call.path != "/graphql"):
            return calls.problem(401, "The bearer token is missing or invalid.")
        if (refused := surface.limits.pace(call.now)) is not None:
            return refused
        reply = self._routed(call)
        if isinstance(reply, Reply):
            reply.headers = {**surface.limits.headers(call.now), **(reply.headers or {})}
        return reply

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

    async def _send(self, request: web.BaseRequest, reply: Reply, struck: Mapping[str, Fault]) -> web.StreamResponse:
        if reply is DROPPED:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        skew = struck.get("clock_skew")
        now = self._clock.time() + (skew.number("skew", 120.0) if skew is not None else 0.0)
        headers = {"Date": email.utils.formatdate(int(now), usegmt=True), **(reply.headers or {})}
        if reply.status != 204:  # noqa: PLR2004 - no content, no type of it
            headers["Content-Type"] = reply.content_type
        if "truncated" in struck and len(reply.body) > 1:
            return await _send_half(request, reply, headers)
        return web.Response(body=reply.body, status=reply.status, headers=headers)


def _call(request: web.BaseRequest, path: str, body: bytes, now: float, struck: Mapping[str, Fault]) -> Call:
    header = request.headers.get("Authorization", "")
    key = header[7:].strip() if header.startswith("Bearer ") else request.query.get("api_key")
    decoded, is_broken = _decode(body)
    return Call(
        method=request.method,
        path=path,
        query=request.query,
        headers=request.headers,
        body=decoded,
        is_body_broken=is_broken,
        key=key or None,
        now=now,
        struck=struck,
    )


def _decode(body: bytes) -> tuple[Any, bool]:
    if not body:
        return None, False
    try:
        return msgspec.json.decode(body), False
    except msgspec.DecodeError:
        return None, True


def _before(surface: Surface, struck: Mapping[str, Fault]) -> Reply | None:
    if not struck:
        return None
    if "html_403" in struck:
        return Reply(_FORBIDDEN_PAGE, 403, "text/html")
    if (fault := struck.get("server_error_before")) is not None:
        return _server_error(fault)
    if "throttle_text" in struck:
        return Reply(b"Too Many Requests", 429, TEXT)
    if (fault := struck.get("throttle_json") or struck.get("throttle_retry_after")) is not None:
        return surface.limits.refuse(surface.world.now, fault.number("retry_after", 5.0))
    reset = struck.get("reset")
    return DROPPED if reset is not None and reset.extra.get("when") == "before" else None


def _after(struck: Mapping[str, Fault], reply: Reply) -> Reply:
    if not struck:
        return reply
    if "reset" in struck:
        return DROPPED
    if (fault := struck.get("server_error_after")) is not None:
        return _server_error(fault)
    if "malformed" in struck:
        return Reply(b'{"data": tru' + reply.body[: len(reply.body) // 2], reply.status, reply.content_type)
    return reply


def _server_error(fault: Fault) -> Reply:
    status = int(fault.number("status", 503.0))
    page = f"<html><body><h1>{status} Service Temporarily Unavailable</h1></body></html>"
    return Reply(page.encode(), status, "text/html")


async def _send_half(request: web.BaseRequest, reply: Reply, headers: Mapping[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status, headers={**headers, "Content-Length": str(len(reply.body))})
    await response.prepare(request)
    await response.write(reply.body[: len(reply.body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
