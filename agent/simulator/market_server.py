"""The simulated markets as a server: each vendor's API on a port, the control API on another, all on loopback.

They run in the process of a test or a rehearsal, or alone behind `gpubid simulate`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

from aiohttp import web

from agent.simulator import faults, http_wire, registered_simulators
from agent.simulator.climate import Climate, ClimateError
from agent.simulator.control_api import Control
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import SimulatedMarket
from agent.simulator.simulator_record import Beginning

ADDRESS = "127.0.0.1"


class Simulator:
    """Serves one market of each vendor."""

    def __init__(
        self,
        climate: Climate,
        clock: Clock,
        sides: Mapping[str, SimulatedMarket],
        processes: ProcessRegistry | None = None,
    ) -> None:
        """Take the markets by their names, in one climate; the control API means the first where a call names none.

        Raises:
            ClimateError: the climate runs real processes without `processes`, or `processes` is given and it runs none.
            BadFaultError: its weather names a market that is none of `sides`.
        """
        if climate.processes != (processes is not None):
            raise ClimateError(
                f"The climate {climate.name!r} {'runs' if processes is None else 'does not run'} real processes. "
                "Only `gpubid simulate`, `gpubid rehearse` and tests may, in a climate with processes = true."
            )
        faults.check_markets(map(faults.parse, climate.weather), sides.keys())
        self._processes = processes
        self.climate = climate
        self.clock = clock
        self.sides = sides
        self.control = Control(clock, sides)
        self._urls: dict[str, str] = {}
        self.control_url = ""
        self._running: list[tuple[asyncio.Server, web.Server]] = []

    @classmethod
    def begun(  # noqa: PLR0913 - one parameter per part
        cls,
        climate: Climate,
        clock: Clock,
        *,
        seed: int,
        start: float,
        hosts: int | None = None,
        ids: str = "",
        is_paced: bool = False,
        processes: ProcessRegistry | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> "Simulator":
        """Return a simulator whose markets begin at `start`. With `ids`, no other start has the same ids.

        `options` are those of the markets' records, by market and key. With `is_paced` calls that come faster than the
        vendors publish are refused.

        Raises:
            ClimateError: as when it is made of markets.
            ImportError: a package that brings a market is broken.
        """
        about = options or {}
        sides = {
            name: record.begin(
                Beginning(
                    climate,
                    seed,
                    start,
                    clock,
                    ids=ids,
                    hosts=hosts,
                    is_paced=is_paced,
                    processes=processes,
                    options=about.get(name, {}),
                )
            )
            for name, record in registered_simulators.installed().items()
        }
        return cls(climate, clock, sides, processes)

    async def start(self, ports: Mapping[str, int] | None = None, control_port: int = 0) -> None:
        """Listen on loopback, with the ports of some markets by their names; any other port is a free one."""
        for name, side in self.sides.items():
            server = web.Server(_handler(side), access_log=None)
            self._urls[name] = await self._listen(server, (ports or {}).get(name, 0))
        self.control_url = await self._listen(web.Server(self.control.handle, access_log=None), control_port)

    def url(self, market: str) -> str:
        """Return the URL of a market's API by the market's name; empty before the start."""
        return self._urls.get(market, "")

    def advance_to(self, now: float) -> None:
        """Move all markets to `now`. A call to one market's API moves that market alone."""
        for side in self.sides.values():
            side.follow(now)

    async def stop(self) -> None:
        """Close all ports, also of containers, and all connections. End real processes and remove their disks."""
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
