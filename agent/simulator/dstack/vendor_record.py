"""The record of the simulated dstack server."""

from typing import TYPE_CHECKING

from agent.simulator.dstack.climate_table import Dstack
from agent.simulator.simulator_record import Beginning, SimulatorRecord

if TYPE_CHECKING:
    from agent.simulator.dstack.side import Side


def begin(beginning: Beginning) -> "Side":
    """Return the market at its first instant."""
    from agent.simulator.dstack import side
    from agent.simulator.dstack.world import World

    world = World(beginning.climate, seed=beginning.seed, start=beginning.start, ids=beginning.ids)
    return side.served(world, beginning.clock, beginning.seed, beginning.key)


def list_figures() -> None:
    """Add this market's figures to the list of all."""
    from agent.simulator.dstack import assumed_figures

    del assumed_figures


RECORD = SimulatorRecord(name="dstack", begin=begin, title="dstack", climate_table=Dstack, list_figures=list_figures)
