"""The record of a simulated market: its beginning, and its settings for `gpubid simulate` and the climates.

A package registers its record in the entry-point group `gpubid.simulators`, under the name of the market in
`gpubid.markets`. Two groups, because the adapter and the simulated market share no code: neither knows the other. A
record is read by every verb, so it imports its market only in the functions that need it.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agent.simulator.climate import Climate
from agent.simulator.simulated_clock import Clock

if TYPE_CHECKING:
    from agent.simulator.processes.process_registry import ProcessRegistry
    from agent.simulator.simulated_market import SimulatedMarket

DEFAULT_KEY = "simulated-key"


@dataclasses.dataclass(frozen=True, slots=True)
class Beginning:
    """How a simulated market begins: at `start`, epoch seconds, by the rules of its climate.

    The same beginning gives the same market. `key` is the key that it takes. With `ids` its ids differ from those of
    every other beginning.
    """

    climate: Climate
    seed: int
    start: float
    clock: Clock
    key: str = DEFAULT_KEY
    ids: str = ""
    hosts: int | None = None
    """How many hosts it has, where a climate sets that; None: as many as the climate says."""
    is_paced: bool = False
    """Whether it refuses calls beyond the rates that the vendor publishes."""
    processes: "ProcessRegistry | None" = None
    """Where its instances run real processes, in a climate with such."""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The given options of its record, by key."""


@dataclasses.dataclass(frozen=True, slots=True)
class SimulatorOption:
    """An option of `gpubid simulate` for one market: `--NAME-KEY`, or `--KEY` for the first market."""

    key: str
    kind: type[str] | type[float]
    help: str
    choices: tuple[str, ...] = ()
    """The values of a text; empty: any."""


@dataclasses.dataclass(frozen=True, slots=True)
class SimulatorRecord:
    """The simulated market of a vendor."""

    name: str
    """The name of the market in `gpubid.markets`."""
    begin: Callable[[Beginning], "SimulatedMarket"]
    """Returns the market at its first instant."""
    title: str = ""
    """The vendor's name as the vendor writes it; empty: as `name`."""
    is_first: bool = False
    """Whether calls of the control API and faults without the name of a market mean it; only one of ours is."""
    options: tuple[SimulatorOption, ...] = ()
    """What `gpubid simulate` takes for it, besides its port."""
    climate_table: type | None = None
    """A frozen dataclass, every field with a default: the table `[NAME]` of a climate. Its errors are ValueErrors."""
    climates: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Climates that its package brings, as TOML by name."""
    list_figures: Callable[[], object] | None = None
    """Imports the modules whose figures `gpubid simulate --about` prints."""
