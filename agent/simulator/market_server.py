"""The simulated markets as a server: each vendor's API on a port, the control API on another, all on loopback.

They run in the process of a test or a rehearsal, or alone behind `gpubid simulate`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Self

from aiohttp import web

from agent.simulator import http_wire, registered_simulators
from agent.simulator.call_gate import Gate
from agent.simulator.climate import Climate, ClimateError
from agent.simulator.control_api import Control
from agent.simulator.mithril import container_start as machine_start
from agent.simulator.mithril import side as mithril_side
from agent.simulator.mithril import world as mithril_world
from agent.simulator.mithril.http.api import MithrilApi
from agent.simulator.mithril.http.surface import Surface as MithrilSurface
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.runpod import container_start as pod_start
from agent.simulator.runpod import side as runpod_side
from agent.simulator.runpod import world as runpod_world
from agent.simulator.runpod.http.api import RunpodApi
from agent.simulator.runpod.http.rate_windows import Limits
from agent.simulator.runpod.http.surface import Surface as RunpodSurface
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import Beginning, SimulatedMarket
from agent.simulator.vast import container_start
from agent.simulator.vast import side as vast_side
from agent.simulator.vast.http.api import VastApi
from agent.simulator.vast.http.surface import Surface
from agent.simulator.vast.world import World
from agent.simulator.weather import Weather

ADDRESS = "127.0.0.1"


class Simulator:
    """Serve one world of each market. A test may also read and steer its parts directly."""

    def __init__(  # noqa: PLR0913 - one parameter per part
        self,
        world: World,
        clock: Clock,
        *,
        seed: int = 7,
        gate: Gate | None = None,
        pods: runpod_world.World | None = None,
        limits: Limits | None = None,
        processes: ProcessRegistry | None = None,
        auctions: mithril_world.World | None = None,
        ids: str = "",
    ) -> None:
        """Put a surface before each world, each with its own weather.

        Without `pods` and `auctions` the worlds of RunPod and Mithril have the climate of `world`. Markets that
        register a record begin beside them; with `ids` their ids differ from those of every other simulator.

        Raises:
            ClimateError: the climate runs real processes without `processes`, or `processes` is given and it runs none.
        """
        if world.climate.processes != (processes is not None):
            raise ClimateError(
                f"The climate {world.climate.name!r} {'runs' if processes is None else 'does not run'} real processes. "
                "Only `gpubid simulate`, `gpubid rehearse` and tests may, in a climate with processes = true."
            )
        self._processes = processes
        self.world = world
        self.clock = clock
        self.weather = Weather(world, seed, world.climate.weather)
        self.gate = gate if gate is not None else Gate()
        self.surface = Surface(world, self.weather, self.gate, seed)
        self.api = VastApi(self.surface, clock)
        self.pods = pods if pods is not None else runpod_world.World(world.climate, seed=seed, start=world.now)
        pod_weather = Weather(self.pods, seed, world.climate.weather, market="runpod")
        self.runpod = RunpodSurface(self.pods, pod_weather, limits, self.gate.key)
        self.runpod_api = RunpodApi(self.runpod, clock)
        self.mithril = self._mithril(auctions or mithril_world.World(world.climate, seed=seed, start=world.now), seed)
        self.mithril_api = MithrilApi(self.mithril, clock)
        if processes is not None:
            self._run_processes(processes)
        self.sides = self._sides(seed, ids)
        self.control = Control(self.surface, self.runpod, self.mithril, clock, self.sides)
        self._urls: dict[str, str] = {}
        self.vast_url = self.runpod_url = self.mithril_url = self.control_url = ""
        self._running: list[tuple[asyncio.Server, web.Server]] = []

    @classmethod
    def begun(
        cls,
        climate: Climate,
        clock: Clock,
        *,
        seed: int,
        start: float,
        hosts: int | None = None,
        ids: str = "",
        processes: ProcessRegistry | None = None,
    ) -> Self:
        """Return a simulator whose markets begin at `start`; with `ids` their ids are those of no other start.

        Raises:
            ClimateError: as when it is made of worlds.
        """
        world = World(climate, seed=seed, start=start, hosts=hosts)
        if ids:
            # Milliseconds: a later start has higher numbers.
            world.next_contract = int(start * 1000)
        pods = runpod_world.World(climate, seed=seed, start=start, ids=ids)
        auctions = mithril_world.World(climate, seed=seed, start=start, ids=ids)
        return cls(world, clock, seed=seed, pods=pods, processes=processes, auctions=auctions, ids=ids)

    def _mithril(self, world: mithril_world.World, seed: int) -> MithrilSurface:
        return MithrilSurface(world, Weather(world, seed, world.climate.weather, market="mithril"), self.gate.key)

    def _run_processes(self, registry: ProcessRegistry) -> None:
        instances, pods, machines = self.world.containers, self.pods.containers, self.mithril.world.containers
        instances.run_processes(container_start.launcher(registry, self.gate.instance_key, instances.gpu_lies))
        pods.run_processes(pod_start.launcher(registry, self.runpod.pod_key, pods.gpu_lies))
        machines.run_processes(machine_start.launcher(registry, machines.gpu_lies))

    def _sides(self, seed: int, ids: str) -> dict[str, SimulatedMarket]:
        """Return the markets that tests steer by their parts, and those that register a record."""
        sides: dict[str, SimulatedMarket] = {
            "vast": vast_side.Side(self.surface, self.api),
            "runpod": runpod_side.Side(self.runpod, self.runpod_api),
            "mithril": mithril_side.Side(self.mithril, self.mithril_api),
        }
        beginning = Beginning(self.world.climate, seed, self.world.now, self.clock, self.gate.key, ids)
        return sides | {
            name: record.begin(beginning) for name, record in registered_simulators.others(sides.keys()).items()
        }

    async def start(self, ports: Mapping[str, int] | None = None, control_port: int = 0) -> None:
        """Listen on loopback, with the ports of some markets by their names; any other port is a free one."""
        for name, side in self.sides.items():
            server = web.Server(_handler(side), access_log=None)
            self._urls[name] = await self._listen(server, (ports or {}).get(name, 0))
        self.vast_url, self.runpod_url, self.mithril_url = map(self.url, ("vast", "runpod", "mithril"))
        self.control_url = await self._listen(web.Server(self.control.handle, access_log=None), control_port)

    def url(self, market: str) -> str:
        """Return the URL of a market's API by the market's name; empty before the start."""
        return self._urls.get(market, "")

    def advance_to(self, now: float) -> None:
        """Move all markets to `now`. A call to one market's API moves that market alone."""
        for side in self.sides.values():
            side.follow(now)

    async def stop(self) -> None:
        """Close the ports, those of containers, and every connection; end real processes and remove their disks."""
        if self._processes is not None:
            self._processes.close()
        for side in self.sides.values():
            await side.close()
        while self._running:
            listener, server = self._running.pop()
            listener.close()
            await server.shutdown(timeout=1.0)

    async def __aenter__(self) -> Self:
        """Start on free ports."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()

    async def _listen(self, server: web.Server, port: int) -> str:
        listener = await asyncio.get_running_loop().create_server(server, ADDRESS, port)
        self._running.append((listener, server))
        return f"http://{ADDRESS}:{listener.sockets[0].getsockname()[1]}"


def _handler(side: SimulatedMarket) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request that came over a connection."""
        return await http_wire.send(request, await side.answer(await http_wire.read(request)))

    return handle
