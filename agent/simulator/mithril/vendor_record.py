"""The record of the simulated Mithril."""

from typing import TYPE_CHECKING

from agent.simulator.mithril.climate_table import Mithril
from agent.simulator.simulator_record import Beginning, SimulatorRecord

if TYPE_CHECKING:
    from agent.simulator.mithril.side import Side


def begin(beginning: Beginning) -> "Side":
    """Return the market at its first instant."""
    from agent.simulator.mithril import side
    from agent.simulator.mithril.world import World

    world = World(beginning.climate, seed=beginning.seed, start=beginning.start, ids=beginning.ids)
    return side.served(world, beginning.clock, beginning.seed, beginning.key, beginning.processes)


def list_figures() -> None:
    """Add this market's figures to the list of all."""
    from agent.simulator.mithril import assumed_figures

    del assumed_figures


RECORD = SimulatorRecord(name="mithril", begin=begin, title="Mithril", climate_table=Mithril, list_figures=list_figures)
