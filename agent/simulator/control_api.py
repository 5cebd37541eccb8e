"""The control API: how tests and rehearsals steer the simulated markets. JSON both ways.

| call | body | answer |
|---|---|---|
| POST /advance | {"seconds": N} | {"now": epoch seconds}; every due event on the way happens |
| POST /rivals | {"machine_id": M, "gpus": n, "bid": 0.50}: a bidder, dollars per hour for the slice of n GPUs; or
  {"machine_id": M, "on_demand": true}: a renter nothing displaces. Without "gpus" it wants the whole host | {"id": R} |
  A "machine_id" of RunPod (from the truth) puts it there; its bid is dollars per hour of one GPU. {"pool": ID,
  "quantity": n, "bid": 2.50}: a bidder in a pool of Mithril, dollars per hour of one instance |
| POST /reservations | {"pool": ID, "quantity": n, "seconds": S}: a reservation takes instances of Mithril | the same |
| DELETE /rivals/R | | {"id": R}; 404 if there is none |
| POST /mode | {"mode": NAME}: what RunPod sells from now on; the names are listed in runpod_modes.py | {"mode": NAME} |
| POST /rises | {"machine_id": M, "factor": 1.5}: a host of Vast raises its price, also on demand | {"ids": [R]} |
| POST /maintenance | {"machine_id": M, "after": S, "seconds": S}: a host announces an outage | {"begins": T} |
| POST /webhooks | {"name": "hooks.example.com", "url": "http://127.0.0.1:PORT"}: deliveries to webhooks of that name
  go there | the same |
| POST /weather | {"fault": NAME, "market": "vast", "runpod", "mithril" or "*",
  "route": "PUT /asks" or "*", "probability": 1.0, "seconds": 600, "count": 3, ...};
  names and further keys are listed in faults.py, those of field_lie in field_lies.py | {"id": W} |
| DELETE /weather/W | | {"id": W}; 404 if it does not blow |
| DELETE /weather | | {"cleared": how many} |
| GET /truth | | now, credit, contracts (id, label, machine_id, num_gpus, is_bid, bid, status, created, ended, charged
  {gpu, disk, bandwidth} in dollars), billing_now (ids), charged_total, deliveries
  (time, webhook, event_id, attempt, status; 0 where nobody answered), calls (time, method, path, status; 0 stands for
    a dropped connection), search_rows, weather; under "runpod" the same of that market, whose contracts are pods and
    also have "number", "gpu", "cloud" and "change", and the mode; under "mithril" too, whose contracts are bids with
    their instances, and the pools |

Times are epoch seconds. Bad input answers 400 with {"error": a sentence}.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from aiohttp import web

from agent.simulator import faults, runpod_modes
from agent.simulator.market_model import Refusal
from agent.simulator.mithril.http.surface import Surface as MithrilSurface
from agent.simulator.mithril.other_renters import FIRST_RIVAL as FIRST_BIDDER
from agent.simulator.runpod.hosts import FIRST_MACHINE
from agent.simulator.runpod.http.surface import Surface as RunpodSurface
from agent.simulator.runpod.world import FIRST_RIVAL
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import SimulatedMarket
from agent.simulator.vast.http.surface import Surface

Calls = Iterable[tuple[float, str, str, int]]
_LOOPBACK = re.compile(r"^http://127\.0\.0\.1:\d+/?$")
_NUMBERED = re.compile(r"^(/rivals|/weather)/(\d+)$")


class BadRequestError(ValueError):
    """A request to the control API is wrong; the text says why."""


class NotThereError(ValueError):
    """The thing to remove does not exist."""


class Control:
    """Answer the control API of one market."""

    def __init__(
        self,
        surface: Surface,
        runpod: RunpodSurface,
        mithril: MithrilSurface,
        clock: Clock,
        sides: Mapping[str, SimulatedMarket],
    ) -> None:
        """Steer the surfaces and their clock. GET /truth returns the truth of all `sides`."""
        self._surface = surface
        self._runpod = runpod
        self._mithril = mithril
        self._sides = sides
        self._weathers = {name: side.weather for name, side in sides.items() if side.weather is not None}
        self._clock = clock
        self._verbs: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
            ("POST", "/advance"): self._advance,
            ("POST", "/rivals"): self._add_rival,
            ("POST", "/reservations"): self._reserve,
            ("POST", "/mode"): self._set_mode,
            ("POST", "/rises"): self._raise_price,
            ("POST", "/maintenance"): self._plan_maintenance,
            ("POST", "/webhooks"): self._lead_webhooks,
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
        await self._surface.deliveries.settle()
        return web.Response(
            body=msgspec.json.encode(answer), status=status, headers={"Content-Type": "application/json"}
        )

    def _answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        self._move()
        try:
            if method == "DELETE" and (match := _NUMBERED.match(path)) is not None:
                return 200, self._remove(match.group(1), int(match.group(2)))
            verb = self._verbs.get((method, path))
            if verb is None:
                return 404, {"error": f"There is no {method} {path} here; see agent/simulator/control_api.py."}
            return 200, verb(_object(body))
        except NotThereError as missing:
            return 404, {"error": str(missing)}
        except (BadRequestError, faults.BadFaultError) as bad:
            return 400, {"error": str(bad)}
        except Refusal as refusal:
            return 400, {"error": refusal.sentence}

    def truth(self) -> dict[str, Any]:
        """Return everything as it really is."""
        whole = {name: self._truth(name, side) for name, side in self._sides.items()}
        seen = {"deliveries": self._surface.deliveries.sent, "search_rows": self._surface.gate.search_rows}
        return {**whole.pop("vast"), **seen, **whole}

    def _truth(self, name: str, side: SimulatedMarket) -> dict[str, Any]:
        names = self._weathers[name].names() if name in self._weathers else ()
        weather = [{"id": number, "fault": fault} for number, fault in names]
        return {**side.truth(), "calls": _calls(side.calls), "weather": weather}

    def _advance(self, fields: dict[str, Any]) -> dict[str, Any]:
        _only(fields, "seconds")
        self._clock.advance(_number(fields, "seconds", least=0.0))
        self._move()
        return {"now": self._surface.world.now}

    def _move(self) -> None:
        now = self._clock.time()
        self._surface.weather.advance_to(now)
        self._surface.deliveries.attend(now)
        self._runpod.advance_to(now)
        self._mithril.follow(now)

    def _set_mode(self, fields: dict[str, Any]) -> dict[str, Any]:
        _only(fields, "mode")
        try:
            mode = runpod_modes.parse(fields.get("mode"))
        except ValueError as error:
            raise BadRequestError(str(error)) from error
        self._runpod.world.set_mode(mode)
        return {"mode": mode.value}

    def _raise_price(self, fields: dict[str, Any]) -> dict[str, Any]:
        _only(fields, "machine_id", "factor")
        factor = _number(fields, "factor", least=1.0)
        rises = self._surface.world.landlord.raise_price(_whole(fields, "machine_id", least=0), factor)
        return {"ids": [rise.rise_id for rise in rises]}

    def _plan_maintenance(self, fields: dict[str, Any]) -> dict[str, Any]:
        _only(fields, "machine_id", "after", "seconds")
        after, seconds = (_number(fields, name, least=0.0) for name in ("after", "seconds"))
        machine_id = _whole(fields, "machine_id", least=0)
        world = self._surface.world.landlord if machine_id < FIRST_MACHINE else self._runpod.world
        world.plan_maintenance(machine_id, after, seconds)
        return {"begins": self._surface.world.now + after}

    def _lead_webhooks(self, fields: dict[str, Any]) -> dict[str, Any]:
        _only(fields, "name", "url")
        name, url = fields.get("name"), fields.get("url")
        if not isinstance(name, str) or not isinstance(url, str) or not _LOOPBACK.match(url):
            raise BadRequestError("url: must be http://127.0.0.1:PORT; name: must be the public name that leads there.")
        self._surface.deliveries.resolve(name, url)
        return {"name": name, "url": url}

    def _reserve(self, fields: dict[str, Any]) -> dict[str, Any]:
        _only(fields, "pool", "quantity", "seconds")
        quantity, seconds = _whole(fields, "quantity", least=1), _number(fields, "seconds", least=0.0)
        self._mithril.advance_to(self._clock.time())
        self._mithril.world.reserve(str(fields.get("pool")), quantity, seconds)
        return fields

    def _add_rival(self, fields: dict[str, Any]) -> dict[str, Any]:
        if "pool" in fields:
            return self._add_bidder(fields)
        _only(fields, "machine_id", "gpus", "bid", "on_demand")
        is_on_demand = fields.get("on_demand", False)
        if not isinstance(is_on_demand, bool):
            raise BadRequestError("on_demand: must be true or false.")
        if is_on_demand == ("bid" in fields):
            raise BadRequestError('bid: give either a bid or "on_demand": true.')
        gpus = _whole(fields, "gpus", least=1) if "gpus" in fields else None
        bid = None if is_on_demand else _number(fields, "bid", least=0.0)
        machine_id = _whole(fields, "machine_id", least=0)
        world = self._surface.world if machine_id < FIRST_MACHINE else self._runpod.world
        return {"id": world.add_rival(machine_id, gpus, bid, on_demand=is_on_demand)}

    def _add_bidder(self, fields: dict[str, Any]) -> dict[str, Any]:
        _only(fields, "pool", "quantity", "bid")
        quantity, cents = _whole(fields, "quantity", least=1), round(100 * _number(fields, "bid", least=0.01))
        self._mithril.advance_to(self._clock.time())
        return {"id": self._mithril.world.add_rival(str(fields["pool"]), cents, quantity)}

    def _add_weather(self, fields: dict[str, Any]) -> dict[str, Any]:
        if "at_seconds" in fields:
            raise BadRequestError("at_seconds: only a climate schedules; a fault declared here blows at once.")
        fault = faults.parse(fields)
        fault_id = max(weather.next_id for weather in self._weathers.values())
        struck = [weather for market, weather in self._weathers.items() if fault.market in (market, "*")]
        if self._mithril.weather in struck:
            self._mithril.advance_to(self._clock.time())
        for weather in struck:
            weather.add(fault, fault_id)
        return {"id": fault_id}

    def _remove(self, kind: str, number: int) -> dict[str, Any]:
        if kind == "/weather":
            blew = [weather.clear(number) for weather in self._weathers.values()]
            is_gone = any(blew)
        else:
            is_gone = self._remove_rival(number)
        if not is_gone:
            raise NotThereError(f"{kind.removeprefix('/')}: there is none of id {number}.")
        return {"id": number}

    def _remove_rival(self, number: int) -> bool:
        if number >= FIRST_BIDDER:
            return self._mithril.world.remove_rival(number)
        world = self._surface.world if number < FIRST_RIVAL else self._runpod.world
        return world.remove_rival(number)


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
