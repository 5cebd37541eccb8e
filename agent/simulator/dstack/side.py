"""This market as the server of all simulated markets sees it, and its calls of the control API.

| call | body | answer |
|---|---|---|
| POST /give_up | {"market": "dstack", "share": 1}: the server gives up this share of the ends from now on | as sent |
| POST /clients | {"market": "dstack", "names": ["aws"]}: no client of these clouds can be made from now on | as sent |
| POST /backends | {"market": "dstack", "names": ["aws"]}: the project has the keys of these clouds alone | as sent |
| POST /fleets | {"market": "dstack", "names": []}: the project has these empty fleets alone | as sent |
| POST /projects | {"market": "dstack", "name": "prod"}: all is in this project, and `main` is empty | as sent |
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agent.simulator import control_fields
from agent.simulator.dstack import truth
from agent.simulator.dstack.http.api import DstackApi
from agent.simulator.dstack.http.routes import Surface
from agent.simulator.dstack.world import FLEET_CONFIGURATION as FLEET
from agent.simulator.dstack.world import World
from agent.simulator.http_wire import Asked
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import Ask, ServedMarket
from agent.simulator.weather import Weather

MARKET = "dstack"
_QUESTIONS = frozenset({"get", "list", "get_plan", "poll"})
"""The last words of the paths that change nothing."""


class Side(ServedMarket):
    """A server and its API."""

    def __init__(self, world: World, weather: Weather, api: DstackApi, key: str) -> None:
        """Take them."""
        super().__init__(api, world, weather, key)
        self.api, self.world = api, world

    @property
    def hosts(self) -> int:
        """How many types of machines its clouds offer."""
        return len(self.world.kinds)

    def follow(self, now: float) -> None:
        """Move the market once it has been called; before that nobody sees whether it moves."""
        if self.api.is_used:
            self.api.advance_to(now)

    def wake(self, now: float) -> None:
        """Move the market, also if nobody has called it yet."""
        self.api.advance_to(now)

    def truth(self) -> Mapping[str, Any]:
        """Return its true state."""
        return truth.as_json(self.world)

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield the price of each type with free machines."""
        for kind in self.world.kinds:
            if kind.count == gpus and not kind.is_spot and self.world.free(kind):
                yield Ask(
                    kind.gpu,
                    gpus,
                    kind.cents / 100,
                    kind.memory_gb * 1024.0,
                    is_verified=True,
                    is_datacenter=True,
                    disk_gb=max(disk_gb, 100.0),
                )

    def steer(self, method: str, path: str, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Let the server give up ends, lose clouds or its clients of them, lose its fleet, or name its project."""
        if method != "POST" or fields.get("market") != MARKET:
            return None
        match path:
            case "/give_up":
                control_fields.only(fields, "market", "share")
                self.world.gives_up = control_fields.number(fields, "share", least=0.0)
            case "/clients":
                control_fields.only(fields, "market", "names")
                self.world.clients.unavailable = frozenset(str(name) for name in fields.get("names", ()))
            case "/backends":
                control_fields.only(fields, "market", "names")
                self.world.backends = [str(name) for name in fields.get("names", ())]
            case "/fleets":
                control_fields.only(fields, "market", "names")
                kept = [str(name) for name in fields.get("names", ())]
                self.world.fleets = {name: made for name, made in self.world.fleets.items() if name in kept}
                for name in kept:
                    self.world.make_fleet({**FLEET, "name": name})
            case "/projects":
                control_fields.only(fields, "market", "name")
                self.world.project = str(fields.get("name"))
            case _:
                return None
        return fields

    def only_reads(self, asked: Asked) -> bool:
        """Return whether a call only reads. On this server such calls are POSTs too."""
        return asked.path.rstrip("/").rsplit("/", 1)[-1] in _QUESTIONS

    async def close(self) -> None:
        """Close nothing: its containers open no ports."""


def served(world: World, clock: Clock, seed: int, key: str) -> Side:
    """Return a world behind its HTTP API, in the weather of its climate."""
    weather = Weather(world, seed, world.climate.weather, market=MARKET)
    return Side(world, weather, DstackApi(Surface(world), weather, key, clock), key)
