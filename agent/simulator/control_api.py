"""The control API: how tests and rehearsals steer the simulated markets. JSON both ways.

| call | body | answer |
|---|---|---|
| POST /advance | {"seconds": N} | {"now": epoch seconds}; every due event on the way happens |
| POST /weather | {"fault": NAME, "market": the name of one, the first by default, or "*",
  "route": "PUT /asks" or "*", "probability": 1.0, "seconds": 600, "count": 3, ...};
  names and further keys are listed in faults.py, those of field_lie in field_lies.py | {"id": W} |
| DELETE /weather/W | | {"id": W}; 404 if it does not blow |
| DELETE /weather | | {"cleared": how many} |
| DELETE /rivals/R | | {"id": R}; 404 if there is none |
| GET /truth | | of the first market: now, credit, contracts (id, label, machine_id, num_gpus, is_bid, bid, status,
  created, ended, charged {gpu, disk, bandwidth} in dollars), billing_now (ids), charged_total, calls (time, method,
  path, status; 0 stands for a dropped connection), weather; under the name of every other market the same of that one |

What else a market can be asked is listed in the side.py of its folder. A call is offered to every market, to the first
one last. Times are epoch seconds. Bad input answers 400 with {"error": a sentence}.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from aiohttp import web

from agent.simulator import control_fields, faults
from agent.simulator.control_fields import BadRequestError
from agent.simulator.market_model import Refusal
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import SimulatedMarket

Calls = Iterable[tuple[float, str, str, int]]
_NUMBERED = re.compile(r"^(/rivals|/weather)/(\d+)$")


class NotThereError(ValueError):
    """The thing to remove does not exist."""


class Control:
    """Answers the control API of all markets."""

    def __init__(self, clock: Clock, sides: Mapping[str, SimulatedMarket]) -> None:
        """Steer the markets and their clock. The first one is meant where a call names none."""
        self._sides = sides
        self._first = next(iter(sides))
        self._weathers = {name: side.weather for name, side in sides.items() if side.weather is not None}
        self._clock = clock
        self._verbs: dict[tuple[str, str], Callable[[dict[str, Any]], Mapping[str, Any]]] = {
            ("POST", "/advance"): self._advance,
            ("POST", "/weather"): self._add_weather,
            ("DELETE", "/weather"): lambda _: {
                "cleared": sum(weather.clear_all() for weather in self._weathers.values())
            },
            ("GET", "/truth"): lambda _: self.truth(),
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        body = await request.read()
        status, answer = self._answer(request.method, request.path.rstrip("/"), body)
        for side in self._sides.values():
            await side.settle()
        return web.Response(
            body=msgspec.json.encode(answer), status=status, headers={"Content-Type": "application/json"}
        )

    def _answer(self, method: str, path: str, body: bytes) -> tuple[int, Mapping[str, Any]]:
        self._move()
        try:
            return 200, self._answered(method, path, body)
        except NotThereError as missing:
            return 404, {"error": str(missing)}
        except (BadRequestError, faults.BadFaultError) as bad:
            return 400, {"error": str(bad)}
        except Refusal as refusal:
            return 400, {"error": refusal.sentence}

    def _answered(self, method: str, path: str, body: bytes) -> Mapping[str, Any]:
        verb = self._verbs.get((method, path))
        if verb is not None:
            return verb(_object(body))
        numbered = _NUMBERED.match(path)
        if method == "DELETE" and numbered is not None and numbered[1] == "/weather":
            return self._remove_weather(int(numbered[2]))
        if method != "DELETE" or numbered is not None:
            # The first market last: it answers what no other takes for itself.
            for side in reversed(list(self._sides.values())):
                answer = side.steer(method, path, {} if method == "DELETE" else _object(body))
                if answer is not None:
                    return answer
        if method == "DELETE" and numbered is not None:
            raise _missing(numbered[1], int(numbered[2]))
        raise NotThereError(f"There is no {method} {path} here; see agent/simulator/control_api.py.")

    def truth(self) -> dict[str, Any]:
        """Return everything as it really is."""
        whole = {name: self._truth(name, side) for name, side in self._sides.items()}
        return {**whole.pop(self._first), **whole}

    def _truth(self, name: str, side: SimulatedMarket) -> dict[str, Any]:
        names = self._weathers[name].names() if name in self._weathers else ()
        weather = [{"id": number, "fault": fault} for number, fault in names]
        return {**side.truth(), "calls": _calls(side.calls), "weather": weather}

    def _advance(self, fields: dict[str, Any]) -> dict[str, Any]:
        control_fields.only(fields, "seconds")
        self._clock.advance(control_fields.number(fields, "seconds", least=0.0))
        self._move()
        return {"now": self._sides[self._first].now}

    def _move(self) -> None:
        now = self._clock.time()
        for side in self._sides.values():
            side.follow(now)

    def _add_weather(self, fields: dict[str, Any]) -> dict[str, Any]:
        if "at_seconds" in fields:
            raise BadRequestError("at_seconds: only a climate schedules; a fault declared here blows at once.")
        fault = faults.parse(fields)
        faults.check_markets([fault], self._weathers.keys())
        fault_id = max(weather.next_id for weather in self._weathers.values())
        for name, weather in self._weathers.items():
            if weather.is_for(fault):
                self._sides[name].wake(self._clock.time())
                weather.add(fault, fault_id)
        return {"id": fault_id}

    def _remove_weather(self, number: int) -> dict[str, Any]:
        blew = [weather.clear(number) for weather in self._weathers.values()]
        if not any(blew):
            raise _missing("/weather", number)
        return {"id": number}


def _missing(kind: str, number: int) -> NotThereError:
    return NotThereError(f"{kind.removeprefix('/')}: there is none of id {number}.")


def _calls(calls: Calls) -> list[dict[str, Any]]:
    names = ("time", "method", "path", "status")
    return [dict(zip(names, call, strict=True)) for call in calls]


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(body or b"{}")
    except msgspec.DecodeError as error:
        raise BadRequestError(f"The body is not JSON: {error}.") from error
    if not isinstance(fields, dict):
        raise BadRequestError("The body must be a JSON object.")
    return fields
