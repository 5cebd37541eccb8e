"""The record of the simulated RunPod."""

import dataclasses
from typing import TYPE_CHECKING

from agent.simulator.runpod import sales_modes
from agent.simulator.runpod.climate_table import Runpod
from agent.simulator.simulator_record import Beginning, SimulatorOption, SimulatorRecord

if TYPE_CHECKING:
    from agent.simulator.runpod.side import Side


def begin(beginning: Beginning) -> "Side":
    """Return the market at its first instant."""
    from agent.simulator.runpod import side
    from agent.simulator.runpod.http import rate_windows
    from agent.simulator.runpod.world import World

    climate, options = beginning.climate, beginning.options
    mode = options.get("mode")
    if mode is not None:
        climate = climate.having(dataclasses.replace(climate.table(Runpod), mode=mode))
    world = World(climate, seed=beginning.seed, start=beginning.start, credit=options.get("credit"), ids=beginning.ids)
    limits = rate_windows.published() if beginning.is_paced else None
    return side.served(world, beginning.clock, beginning.seed, beginning.key, limits, beginning.processes)


def list_figures() -> None:
    """Add this market's figures to the list of all."""
    from agent.simulator.runpod import assumed_figures

    del assumed_figures


RECORD = SimulatorRecord(
    name="runpod",
    begin=begin,
    title="RunPod",
    options=(
        SimulatorOption(
            "mode",
            str,
            f"What RunPod sells: {', '.join(sales_modes.NAMES)}; the climate's own by default.",
            sales_modes.NAMES,
        ),
        SimulatorOption("credit", float, "Dollars at RunPod; the climate's own by default."),
    ),
    climate_table=Runpod,
    list_figures=list_figures,
)
