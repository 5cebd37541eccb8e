"""This market as the server of all simulated markets sees it, and its calls of the control API.

| call | body | answer |
|---|---|---|
| POST /rivals | {"machine_id": M, "gpus": n, "bid": 0.50}: a bidder, dollars per hour for the slice of n GPUs; or
  {"machine_id": M, "on_demand": true}: a renter nothing displaces. Without "gpus" it wants the whole host | {"id": R} |
| POST /rises | {"machine_id": M, "factor": 1.5}: a host raises its price, also on demand | {"ids": [R]} |
| POST /maintenance | {"machine_id": M, "after": S, "seconds": S}: a host announces an outage | {"begins": T} |
| POST /webhooks | {"name": "hooks.example.com", "url": "http://127.0.0.1:PORT"}: deliveries to webhooks of that name
  go there | the same |
| GET /turns | | {"turns": every change of what a contract costs: at, contract_id, gpu in dollars per hour, is_end} |

Its truth has besides: deliveries (time, webhook, event_id, attempt, status; 0 where nobody answered) and search_rows.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent.simulator import control_fields
from agent.simulator.control_fields import BadRequestError
from agent.simulator.instances.billing import Turn
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import Ask, ServedMarket
from agent.simulator.vast import container_start
from agent.simulator.vast.http.api import VastApi
from agent.simulator.vast.http.call_gate import Gate
from agent.simulator.vast.http.surface import Surface
from agent.simulator.vast.world import World
from agent.simulator.weather import Weather

if TYPE_CHECKING:
    from agent.simulator.processes.process_registry import ProcessRegistry

MARKET = "vast"
_LOOPBACK = re.compile(r"^http://127\.0\.0\.1:\d+/?$")


class Side(ServedMarket):
    """A surface and its API."""

    def __init__(self, surface: Surface, api: VastApi) -> None:
        """Take both."""
        super().__init__(api, surface.world, surface.weather, surface.gate.key)
        self.surface, self.api, self.world = surface, api, surface.world

    @property
    def hosts(self) -> int:
        """How many hosts it has."""
        return len(self.world.hosts)

    def follow(self, now: float) -> None:
        """Move the market and its deliveries."""
        self.weather.advance_to(now)
        self.surface.deliveries.attend(now)

    def truth(self) -> Mapping[str, Any]:
        """Return its true state."""
        seen = {"deliveries": self.surface.deliveries.sent, "search_rows": self.surface.gate.search_rows}
        return {**self.world.truth(), **seen}

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield what the rentable slices cost on demand."""
        for slice_ in self.world.listed():
            host = slice_.host
            if slice_.num_gpus == gpus and self.world.is_rentable(slice_):
                yield Ask(
                    gpu=host.gpu.name,
                    gpus=gpus,
                    dollars=self.world.ask(slice_) + host.storage_price * disk_gb / 720,
                    vram_mb=host.gpu.vram_mb,
                    is_verified=host.verification == "verified",
                    is_datacenter=host.is_datacenter is True,
                    reliability=host.reliability,
                    inet_down_mbps=host.inet_down,
                    disk_gb=host.disk_gb,
                    ends_at=host.end_time,
                )

    def steer(self, method: str, path: str, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Let rivals come and go, hosts raise prices and announce outages, and lead webhooks to a test."""
        match method, path.split("/")[1:]:
            case "POST", ["rivals"]:
                machine_id, gpus, bid = control_fields.rival(fields)
                return {"id": self.world.add_rival(machine_id, gpus, bid, on_demand=bid is None)}
            case "DELETE", ["rivals", number] if self.world.remove_rival(int(number)):
                return {"id": int(number)}
            case "POST", ["rises"]:
                return self._raise_price(fields)
            case "POST", ["maintenance"]:
                outage = control_fields.outage(fields)
                self.world.landlord.plan_maintenance(*outage)
                return {"begins": self.now + outage.after}
            case "POST", ["webhooks"]:
                return self._lead_webhooks(fields)
            case "GET", ["turns"]:
                control_fields.only(fields)
                return {"turns": [_turn(each) for each in self.world.turns()]}
        return None

    def _raise_price(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        control_fields.only(fields, "machine_id", "factor")
        factor = control_fields.number(fields, "factor", least=1.0)
        rises = self.world.landlord.raise_price(control_fields.whole(fields, "machine_id", least=0), factor)
        return {"ids": [rise.rise_id for rise in rises]}

    def _lead_webhooks(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        control_fields.only(fields, "name", "url")
        name, url = fields.get("name"), fields.get("url")
        if not isinstance(name, str) or not isinstance(url, str) or not _LOOPBACK.match(url):
            raise BadRequestError("url: must be http://127.0.0.1:PORT; name: must be the public name that leads there.")
        self.surface.deliveries.resolve(name, url)
        return {"name": name, "url": url}

    async def settle(self) -> None:
        """Send the webhooks that are due."""
        await self.surface.deliveries.settle()

    async def close(self) -> None:
        """Close the ports of containers and what delivers webhooks."""
        await self.surface.deliveries.close()
        self.surface.records.doors.close()


def _turn(turn: Turn) -> Mapping[str, Any]:
    return {"at": turn.at, "contract_id": turn.contract_id, "gpu": turn.rates.gpu, "is_end": turn.is_end}


def served(world: World, clock: Clock, seed: int, gate: Gate, processes: "ProcessRegistry | None" = None) -> Side:
    """Return a world behind its HTTP API, in the weather of its climate."""
    weather = Weather(world, seed, world.climate.weather, market=MARKET, is_first=True)
    surface = Surface(world, weather, gate, seed)
    if processes is not None:
        instances = world.containers
        instances.run_processes(container_start.launcher(processes, gate.instance_key, instances.gpu_lies))
    return Side(surface, VastApi(surface, clock))
