"""This market as the server of all simulated markets sees it, and its calls of the control API.

| call | body | answer |
|---|---|---|
| POST /rivals | {"pool": ID, "quantity": n, "bid": 2.50}: a bidder, dollars per hour of one instance | {"id": R} |
| POST /reservations | {"pool": ID, "quantity": n, "seconds": S}: a reservation takes instances of a pool | the same |

The contracts of its truth are bids with their instances; it has the pools besides.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agent.simulator import control_fields
from agent.simulator.mithril import container_start, truth
from agent.simulator.mithril.http.api import MithrilApi
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.mithril.world import World
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import Ask, ServedMarket
from agent.simulator.weather import Weather

if TYPE_CHECKING:
    from agent.simulator.processes.process_registry import ProcessRegistry

MARKET = "mithril"


class Side(ServedMarket):
    """The surface of this market, and its API."""

    def __init__(self, surface: Surface, api: MithrilApi, clock: Clock) -> None:
        """Take both, and the clock of the API."""
        super().__init__(api, surface.world, surface.weather, surface.key)
        self.surface, self.api, self.world = surface, api, surface.world
        self._clock = clock

    @property
    def hosts(self) -> int:
        """How many pools it has."""
        return len(self.world.pools)

    def follow(self, now: float) -> None:
        """Move the market."""
        self.surface.follow(now)

    def wake(self, now: float) -> None:
        """Move the market, also if nobody has called it yet."""
        self.surface.advance_to(now)

    def truth(self) -> Mapping[str, Any]:
        """Return its true state."""
        return truth.as_json(self.world)

    def asks(self, gpus: int, disk_gb: float) -> Iterator[Ask]:
        """Yield nothing: it sells nothing on demand."""
        del gpus, disk_gb
        yield from ()

    def steer(self, method: str, path: str, fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Let bidders come to pools and go, and reservations take instances out of them."""
        match method, path.split("/")[1:]:
            case "POST", ["rivals"] if "pool" in fields:
                control_fields.only(fields, "pool", "quantity", "bid")
                quantity = control_fields.whole(fields, "quantity", least=1)
                cents = round(100 * control_fields.number(fields, "bid", least=0.01))
                self.wake(self._clock.time())
                return {"id": self.world.add_rival(str(fields["pool"]), cents, quantity)}
            case "DELETE", ["rivals", number] if self.world.remove_rival(int(number)):
                return {"id": int(number)}
            case "POST", ["reservations"]:
                control_fields.only(fields, "pool", "quantity", "seconds")
                quantity = control_fields.whole(fields, "quantity", least=1)
                seconds = control_fields.number(fields, "seconds", least=0.0)
                self.wake(self._clock.time())
                self.world.reserve(str(fields.get("pool")), quantity, seconds)
                return fields
        return None

    async def close(self) -> None:
        """Close the ports of containers."""
        self.surface.doors.close()


def served(world: World, clock: Clock, seed: int, key: str, processes: "ProcessRegistry | None" = None) -> Side:
    """Return a world behind its HTTP API, in the weather of its climate."""
    surface = Surface(world, Weather(world, seed, world.climate.weather, market=MARKET), key)
    if processes is not None:
        machines = world.containers
        machines.run_processes(container_start.launcher(processes, machines.gpu_lies))
    return Side(surface, MithrilApi(surface, clock), clock)
