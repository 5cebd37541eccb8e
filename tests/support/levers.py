"""Events of the simulated worlds that only tests cause."""

from agent.simulator.runpod.model import Guest
from agent.simulator.runpod.world import World as PodWorld
from agent.simulator.vast.world import World


def exit_container(world: World, contract_id: int, *, restarts_after: float | None = None) -> None:
    """Let a container end by itself while its contract keeps its GPUs."""
    world._desk.containers.exit(world.contract(contract_id), restarts_after)


def clear_host(world: PodWorld, machine_id: int) -> None:
    """Send every other renter away from a host."""
    for holder in list(world.stock._holders[machine_id]):
        if isinstance(holder, Guest):
            world.stock.remove(holder)
