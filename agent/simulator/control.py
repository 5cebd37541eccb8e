"""The control API: how tests and rehearsals steer the simulated market. JSON both ways.

| call | body | answer |
|---|---|---|
| POST /advance | {"seconds": N} | {"now": epoch seconds}; every due event on the way happens |
| POST /rivals | {"machine_id": M, "gpus": n, "bid": 0.50}: a bidder, dollars per hour for the slice of n GPUs; or
  {"machine_id": M, "on_demand": true}: a renter nothing displaces. Without "gpus" it wants the whole host | {"id": R} |
| DELETE /rivals/R | | {"id": R}; 404 if there is none |
| POST /weather | {"fault": NAME, "route": "PUT /asks" or "*", "probability": 1.0, "seconds": 600, ...};
  names and further keys are listed in faults.py | {"id": W} |
| DELETE /weather/W | | {"id": W}; 404 if it does not blow |
| DELETE /weather | | {"cleared": how many} |
| GET /truth | | now, credit, contracts (id, label, machine_id, num_gpus, is_bid, bid, status, created, ended, charged
  {gpu, disk, bandwidth} in dollars), billing_now (ids), charged_total, calls (time, method, path, status; 0 stands for
  a dropped connection), search_rows, weather |

Times are epoch seconds. Bad input answers 400 with {"error": a sentence}.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from aiohttp import web

from agent.simulator import faults
from agent.simulator.clock import Clock
from agent.simulator.model import Refusal
from agent.simulator.vast_surface import Surface

Calls = Iterable[tuple[float, str, str, int]]
_NUMBERED = re.compile(r"^(/rivals|/weather)/(\d+)$")


class BadRequestError(ValueError):
    """Tell that a request to the control API cannot be understood, in a sentence."""


class NotThereError(ValueError):
    """Tell that what should go is not there."""


class Control:
    """Answer the control API of one market."""

    def __init__(self, surface: Surface, clock: Clock, calls: Calls) -> None:
        """Steer a surface and its clock; `calls` is what GET /truth tells of the calls."""
        self._surface = surface
        self._clock = clock
        self._calls = calls
        self._verbs: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
            ("POST", "/advance"): self._advance,
            ("POST", "/rivals"): self._add_rival,
            ("POST", "/weather"): self._add_weather,
            ("DELETE", "/weather"): lambda _: {"cleared": self._surface.weather.clear_all()},
            ("GET", "/truth"): lambda _: self.truth(),
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        body = await request.read()
        status, answer = self._answer(request.method, request.path.rstrip("/"), body)
        return web.Response(
            body=msgspec.json.encode(answer), status=status, headers={"Content-Type": "application/json"}
        )

    def _answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        self._surface.weather.advance_to(self._clock.time())
        try:
            if method == "DELETE" and (match := _NUMBERED.match(path)) is not None:
                return 200, self._remove(match.group(1), int(match.group(2)))
            verb = self._verbs.get((method, path))
            if verb is None:
                return 404, {"error": f"There is no {method} {path} here; see agent/simulator/control.py."}
            return 200, verb(_object(body))
        except NotThereError as missing:
            return 404, {"error": str(missing)}
        except (BadRequestError, faults.BadFaultError) as bad:
            return 400, {"error": str(bad)}
        except Refusal as refusal:
            return 400, {"error": refusal.sentence}

    def truth(self) -> dict[str, Any]:
        """Give everything as it really is."""
        names = ("time", "method", "path", "status")
        return {
            **self._surface.world.truth(),
            "calls": [dict(zip(names, call, strict=True)) for call in self._calls],
            "search_rows": self._surface.gate.search_rows,
            "weather": [{"id": number, "fault": name} for number, name in self._surface.weather.names()],
        }

    def _advance(self, fields: dict[str, Any]) -> dict[str, Any]:
        _only(fields, "seconds")
        self._clock.advance(_number(fields, "seconds", least=0.0))
        self._surface.weather.advance_to(self._clock.time())
        return {"now": self._surface.world.now}

    def _add_rival(self, fields: dict[str, Any]) -> dict[str, Any]:
        _only(fields, "machine_id", "gpus", "bid", "on_demand")
        is_on_demand = fields.get("on_demand", False)
        if not isinstance(is_on_demand, bool):
            raise BadRequestError("on_demand: must be true or false.")
        if is_on_demand == ("bid" in fields):
            raise BadRequestError('bid: give either a bid or "on_demand": true.')
        gpus = _whole(fields, "gpus", least=1) if "gpus" in fields else None
        bid = None if is_on_demand else _number(fields, "bid", least=0.0)
        machine_id = _whole(fields, "machine_id", least=0)
        return {"id": self._surface.world.add_rival(machine_id, gpus, bid, on_demand=is_on_demand)}

    def _add_weather(self, fields: dict[str, Any]) -> dict[str, Any]:
        if "at_seconds" in fields:
            raise BadRequestError("at_seconds: only a climate schedules; a fault declared here blows at once.")
        return {"id": self._surface.weather.add(faults.parse(fields))}

    def _remove(self, kind: str, number: int) -> dict[str, Any]:
        remove = self._surface.world.remove_rival if kind == "/rivals" else self._surface.weather.clear
        if not remove(number):
            raise NotThereError(f"{kind.removeprefix('/')}: there is none of id {number}.")
        return {"id": number}


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(body or b"{}")
    except msgspec.DecodeError as error:
        raise BadRequestError(f"The body is not JSON: {error}.") from error
    if not isinstance(fields, dict):
        raise BadRequestError("The body must be a JSON object.")
    return fields


def _only(fields: dict[str, Any], *names: str) -> None:
    for name in fields.keys() - set(names):
        raise BadRequestError(f"{name}: unknown key; known are {', '.join(names)}.")


def _number(fields: dict[str, Any], name: str, *, least: float) -> float:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        raise BadRequestError(f"{name}: must be a number of at least {least:g}.")
    return float(value)


def _whole(fields: dict[str, Any], name: str, *, least: int) -> int:
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadRequestError(f"{name}: must be a whole number of at least {least}.")
    return value
