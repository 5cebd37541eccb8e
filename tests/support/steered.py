"""The simulated markets with their parts at hand: worlds that a test has made, and what stands before each."""

from collections.abc import Mapping

from agent.simulator import faults, market_server, registered_simulators
from agent.simulator.mithril import side as mithril_side
from agent.simulator.mithril.world import World as Auctions
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.runpod import side as runpod_side
from agent.simulator.runpod.http.rate_windows import Limits
from agent.simulator.runpod.world import World as Pods
from agent.simulator.simulated_clock import Clock
from agent.simulator.simulated_market import SimulatedMarket
from agent.simulator.simulator_record import Beginning
from agent.simulator.vast import side as vast_side
from agent.simulator.vast.http.call_gate import Gate
from agent.simulator.vast.world import World


class OfVast(market_server.Simulator):
    """Serve one world of Vast, and the markets beside it."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        *,
        seed: int = 7,
        gate: Gate | None = None,
        processes: ProcessRegistry | None = None,
        others: Mapping[str, SimulatedMarket] | None = None,
    ) -> None:
        """Without `others` the climate may have no weather of another market."""
        self.world, self.gate = world, gate if gate is not None else Gate()
        vast = vast_side.served(world, clock, seed, self.gate, processes)
        self.surface, self.api, self.weather = vast.surface, vast.api, vast.weather
        super().__init__(world.climate, clock, {"vast": vast, **(others or {})}, processes)

    @property
    def vast_url(self) -> str:
        return self.url("vast")


class Simulator(OfVast):
    """Serve one world of each of our markets, and beside them the markets of installed packages."""

    def __init__(  # noqa: PLR0913 - one parameter per part
        self,
        world: World,
        clock: Clock,
        *,
        seed: int = 7,
        gate: Gate | None = None,
        pods: Pods | None = None,
        limits: Limits | None = None,
        processes: ProcessRegistry | None = None,
        auctions: Auctions | None = None,
    ) -> None:
        """Without `pods` and `auctions` the worlds of RunPod and Mithril have the climate of `world`."""
        climate, start, gate = world.climate, world.now, gate if gate is not None else Gate()
        self.pods = pods if pods is not None else Pods(climate, seed=seed, start=start)
        auctions = auctions if auctions is not None else Auctions(climate, seed=seed, start=start)
        runpod = runpod_side.served(self.pods, clock, seed, gate.key, limits, processes)
        mithril = mithril_side.served(auctions, clock, seed, gate.key, processes)
        self.runpod, self.runpod_api = runpod.surface, runpod.api
        self.mithril, self.mithril_api = mithril.surface, mithril.api
        others: dict[str, SimulatedMarket] = {"runpod": runpod, "mithril": mithril}
        beginning = Beginning(climate, seed, start, clock, gate.key)
        for name, record in registered_simulators.installed().items():
            if name not in {"vast", *others}:
                others[name] = record.begin(beginning)
        super().__init__(world, clock, seed=seed, gate=gate, processes=processes, others=others)

    @property
    def runpod_url(self) -> str:
        return self.url("runpod")

    @property
    def mithril_url(self) -> str:
        return self.url("mithril")


def of_vast(
    world: World, clock: Clock, *, seed: int, gate: Gate | None = None, processes: ProcessRegistry | None = None
) -> OfVast:
    """Serve one world of Vast alone, and the others only where the climate has weather for them: a world takes time."""
    named = {fault.market for fault in map(faults.parse, world.climate.weather)}
    serve = OfVast if named <= {"", faults.ALL, "vast"} else Simulator
    return serve(world, clock, seed=seed, gate=gate, processes=processes)
