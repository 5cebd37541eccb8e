"""The record of the simulated Vast.ai."""

from typing import TYPE_CHECKING

from agent.simulator.simulator_record import Beginning, SimulatorOption, SimulatorRecord

if TYPE_CHECKING:
    from agent.simulator.vast.side import Side


def begin(beginning: Beginning) -> "Side":
    """Return the market at its first instant."""
    from agent.simulator.vast import side
    from agent.simulator.vast.http import call_gate
    from agent.simulator.vast.world import World

    about, start = beginning.options, beginning.start
    world = World(
        beginning.climate, seed=beginning.seed, start=start, hosts=beginning.hosts, credit=about.get("credit")
    )
    if beginning.ids:
        # Milliseconds: a later start has higher numbers.
        world.next_contract = int(start * 1000)
    gate = (call_gate.published if beginning.is_paced else call_gate.Gate)(beginning.key)
    return side.served(world, beginning.clock, beginning.seed, gate, beginning.processes)


RECORD = SimulatorRecord(
    name="vast",
    begin=begin,
    title="Vast.ai",
    is_first=True,
    options=(SimulatorOption("credit", float, "Dollars of the account; the climate's own by default."),),
)
