"""The HTTP surface of this market, and the way of a call through weather.

1. Before a call is answered, the market is moved to the clock's present. The answer itself awaits nothing.
2. Faults "before" leave the market untouched; faults "after" come when the call was applied. Field lies come last, in
   `api_calls.dressed`, and change only bytes.
3. Every call is written down with its status; 0 stands for a dropped connection.
"""

import collections

from agent.simulator import api_calls
from agent.simulator.api_calls import Reply
from agent.simulator.dstack.http import call_faults, calls, routes
from agent.simulator.dstack.http.calls import Call
from agent.simulator.dstack.http.routes import Surface
from agent.simulator.dstack.model import Refused
from agent.simulator.http_wire import Answer, Asked
from agent.simulator.simulated_clock import Clock
from agent.simulator.weather import Weather

MOST_CALLS_KEPT = 200_000


class DstackApi:
    """Answers requests to one server."""

    def __init__(self, surface: Surface, weather: Weather, key: str, clock: Clock) -> None:
        """Answer for one surface, by one clock."""
        self._surface = surface
        self._weather = weather
        self._key = key
        self._clock = clock
        self.is_used = False
        weather.on_begin = surface.freeze
        self.calls: collections.deque[tuple[float, str, str, int]] = collections.deque(maxlen=MOST_CALLS_KEPT)

    def advance_to(self, now: float) -> None:
        """Move the market."""
        self.is_used = True
        self._weather.advance_to(now)

    async def answer(self, asked: Asked) -> Answer:
        """Answer one request."""
        path = asked.path.rstrip("/") or "/"
        self.advance_to(self._clock.time())
        struck = self._weather.struck(asked.method, path)
        if (slow := struck.get("slow")) is not None:
            await self._clock.sleep(slow.number("delay", 30.0))
            self.advance_to(self._clock.time())
        call = Call.of(asked, path, self._surface.world.now, struck)
        reply = api_calls.after(struck, call_faults.before(struck) or self._answer(call))
        self.calls.append((call.now, call.method, path, reply.status))
        place = api_calls.Place(call.method, path, path)
        return api_calls.dressed(reply, place, struck, self._weather, calls.VOCABULARY, self._clock.time())

    def _answer(self, call: Call) -> Reply:
        if call.key != self._key or "revoked_key" in call.struck:
            return calls.refuse(Refused(403, "Invalid token"))
        try:
            return routes.answer(self._surface, call)
        except Refused as refused:
            return calls.refuse(refused)
