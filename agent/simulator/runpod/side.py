"""This market as the server of all simulated markets sees it, and its calls of the control API.

| call | body | answer |
|---|---|---|
| POST /rivals | {"machine_id": M of this market's truth, "gpus": n, "bid": 0.50}: a bidder, dollars per hour of
  one GPU; or "on_demand": true | {"id": R} |
| POST /mode | {"mode": NAME}: what is sold from now on; the names are listed in sales_modes.py | {"mode": NAME} |
| POST /maintenance | {"machine_id": M, "after": S, "seconds": S}: a host announces an outage | {"begins": T} |

The contracts of its truth are pods and also have "number", "gpu", "cloud" and "change"; it has the mode besides.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent.simulator import control_fields
from agent.simulator.control_fields import BadRequestError
from agent.simulator.runpod import container_start, places, sales_modes, truth
from agent.simulator.runpod.hosts import FIRST_MACHINE
from agent.simulator.runpod.http.api import RunpodApi
from agent.simulator.runpod.http.rate_windows import Limits
from agent.simulator.runpod.http.surface import Surface
from agent.simulator.runpod.world import World
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import Ask, ServedMarket
from agent.simulator.weather import Weather

if TYPE_CHECKING:
    from agent.simulator.processes.process_registry import ProcessRegistry

MARKET = "runpod"


class Side(ServedMarket):
    """A surface and its API."""

    def __init__(self, surface: Surface, api: RunpodApi) -> None:
        """Take both."""
        super().__init__(api, surface.world, surface.weather, surface.key)
        self.surface, self.api, self.world = surface, api, surface.world

    @property
    def hosts(self) -> int:
        """How many hosts it has."""
        return len(self.world.hosts)

    def follow(self, now: float) -> None:
        """Move the market."""
        self.surface.advance_to(now)

    def truth(self) -> Mapping[str, Any]:
        """Return its true state."""
        return truth.as_json(self.world)

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield the on-demand price of each host with enough free GPUs."""
        pods = self.world
        for host in pods.hosts.values():
            if pods.stock.free(host) >= gpus:
                is_secure = host.center_id is not None
                yield Ask(
                    gpu=host.gpu.name,
                    gpus=gpus,
                    dollars=pods.price(host.gpu, host.cloud) * gpus + pods.disk_price(disk_gb),
                    vram_mb=host.gpu.memory_gb * 1024,
                    is_verified=is_secure,
                    is_datacenter=is_secure,
                )

    def add_volume(self, name: str, size_gb: int, is_wanted: Callable[[str], bool]) -> None:
        """Make a network volume in the data centre with most wanted GPUs."""
        if self.world.volumes.get(name) is None:
            self.world.volumes.create(name, size_gb, self._center(is_wanted), name)

    def _center(self, is_wanted: Callable[[str], bool]) -> str:
        gpus = Counter[str]()
        for host in self.world.hosts.values():
            if host.center_id is not None and is_wanted(host.gpu.name):
                gpus[host.center_id] += host.gpu_count
        # Among equals the first by name, so that the same configuration gives the same market.
        return min(gpus, key=lambda center: (-gpus[center], center), default=places.EUROPEAN)

    def steer(self, method: str, path: str, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Change the mode of sales, add and remove rivals, and announce outages. Hosts are named by their numbers."""
        match method, path.split("/")[1:]:
            case "POST", ["mode"]:
                return self._set_mode(fields)
            case "POST", ["rivals"] if control_fields.names_host_from(fields, FIRST_MACHINE):
                machine_id, gpus, bid = control_fields.rival(fields)
                return {"id": self.world.add_rival(machine_id, gpus, bid, on_demand=bid is None)}
            case "DELETE", ["rivals", number] if self.world.remove_rival(int(number)):
                return {"id": int(number)}
            case "POST", ["maintenance"] if control_fields.names_host_from(fields, FIRST_MACHINE):
                outage = control_fields.outage(fields)
                self.world.plan_maintenance(*outage)
                return {"begins": self.now + outage.after}
        return None

    def _set_mode(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        control_fields.only(fields, "mode")
        try:
            mode = sales_modes.parse(fields.get("mode"))
        except ValueError as error:
            raise BadRequestError(str(error)) from error
        self.world.set_mode(mode)
        return {"mode": mode.value}

    async def close(self) -> None:
        """Close the ports of containers."""
        self.surface.doors.close()


def served(
    world: World,
    clock: Clock,
    seed: int,
    key: str,
    limits: Limits | None = None,
    processes: "ProcessRegistry | None" = None,
) -> Side:
    """Return a world behind its HTTP API, in the weather of its climate."""
    weather = Weather(world, seed, world.climate.weather, market=MARKET)
    surface = Surface(world, weather, limits, key)
    if processes is not None:
        pods = world.containers
        pods.run_processes(container_start.launcher(processes, surface.pod_key, pods.gpu_lies))
    return Side(surface, RunpodApi(surface, clock))
