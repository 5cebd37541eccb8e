"""The simulated markets with their parts at hand: worlds that a test has made, and what stands before each."""

from agent.simulator import market_server, registered_simulators
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


class Simulator(market_server.Simulator):
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
        climate, start = world.climate, world.now
        self.world, self.gate = world, gate if gate is not None else Gate()
        self.pods = pods if pods is not None else Pods(climate, seed=seed, start=start)
        auctions = auctions if auctions is not None else Auctions(climate, seed=seed, start=start)
        key = self.gate.key
        vast = vast_side.served(world, clock, seed, self.gate, processes)
        runpod = runpod_side.served(self.pods, clock, seed, key, limits, processes)
        mithril = mithril_side.served(auctions, clock, seed, key, processes)
        self.surface, self.api, self.weather = vast.surface, vast.api, vast.weather
        self.runpod, self.runpod_api = runpod.surface, runpod.api
        self.mithril, self.mithril_api = mithril.surface, mithril.api
        sides: dict[str, SimulatedMarket] = {"vast": vast, "runpod": runpod, "mithril": mithril}
        beginning = Beginning(climate, seed, start, clock, key)
        for name, record in registered_simulators.installed().items():
            if name not in sides:
                sides[name] = record.begin(beginning)
        super().__init__(climate, clock, sides, processes)

    @property
    def vast_url(self) -> str:
        return self.url("vast")

    @property
    def runpod_url(self) -> str:
        return self.url("runpod")

    @property
    def mithril_url(self) -> str:
        return self.url("mithril")
