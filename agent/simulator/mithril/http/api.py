"""The HTTP surface of this market, and the way of a call through weather.

1. Before a call is answered, the market is moved to the clock's present. The answer itself awaits nothing.
2. Faults "before" leave the market untouched; faults "after" come when the call was applied. Field lies come last, in
   `_dressed`, and change only bytes.
3. Every call is written down with its status; 0 stands for a dropped connection.
"""

import collections
import email.utils
import functools
from collections.abc import Mapping

from agent.simulator import api_calls, http_wire
from agent.simulator.api_calls import DROPPED, Reply
from agent.simulator.faults import Fault
from agent.simulator.http_wire import Answer, Asked, Cut
from agent.simulator.mithril.http import call_faults, calls, routes
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.mithril.model import Refused
from agent.simulator.simulated_clock import Clock

MOST_CALLS_KEPT = 200_000


class MithrilApi:
    """Answer requests to one market."""

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
        call = _call(asked, path, surface.world.now, struck)
        reply = api_calls.after(struck, call_faults.before(struck) or self._answer(call))
        self.calls.append((call.now, call.method, path, reply.status))
        return self._dressed(call, reply)

    def _answer(self, call: Call) -> Reply:
        if not self._surface.is_known(call.key) or "revoked_key" in call.struck:
            return calls.refuse(Refused(401, "Invalid or missing API key"))
        try:
            return routes.answer(self._surface, call)
        except Refused as refused:
            return calls.refuse(refused)

    def _dressed(self, call: Call, reply: Reply) -> Answer:
        """Return the final answer: its headers with the clock's Date, and the active field lies."""
        if reply is DROPPED:
            return http_wire.DROPPED
        skew = call.struck.get("clock_skew")
        now = self._clock.time() + (skew.number("skew", 120.0) if skew is not None else 0.0)
        honest = {"Date": _http_date(int(now)), **(reply.headers or {})}
        if reply.status != 204:  # noqa: PLR2004 - no content, no type of it
            honest["Content-Type"] = reply.content_type
        weather = self._surface.weather
        headers, body = weather.falsified(call.method, call.path, call.path, honest, reply.body, calls.VOCABULARY)
        is_half = "truncated" in call.struck and len(body) > 1
        return Answer(reply.status, headers, body, Cut.HALF if is_half else Cut.WHOLE)


def _call(asked: Asked, path: str, now: float, struck: Mapping[str, Fault]) -> Call:
    body, is_broken = http_wire.decoded(asked.body)
    return Call(
        method=asked.method,
        path=path,
        query=asked.query,
        headers=asked.headers,
        body=body,
        is_body_broken=is_broken,
        key=asked.key,
        now=now,
        struck=struck,
    )


@functools.lru_cache(8)
def _http_date(second: int) -> str:
    return email.utils.formatdate(second, usegmt=True)
