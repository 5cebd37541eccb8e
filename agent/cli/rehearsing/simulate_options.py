"""The options and the help of `gpubid simulate` that come from the records of simulated markets."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from agent.simulator import climate_files, registered_simulators
from agent.simulator.climate import ClimateError
from agent.simulator.simulator_record import SimulatorOption, SimulatorRecord

BEFORE = "control_port"
"""The options of markets are listed before this parameter."""


@dataclass(frozen=True, slots=True)
class MarketOption:
    """An option for one market: its port, if `option` is None."""

    market: str
    flag: str
    about: str
    option: SimulatorOption | None = None

    @property
    def parameter(self) -> str:
        """The name of its parameter."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def annotation(self) -> object:
        """Its type as typer reads it."""
        if self.option is None:
            return Annotated[int, typer.Option(self.flag, min=0, max=65535, help=self.about)]
        return Annotated[self.option.kind | None, typer.Option(self.flag, help=self.about)]

    @property
    def default(self) -> int | None:
        """Its value if it is not given."""
        return 0 if self.option is None else None


@functools.cache
def of_markets() -> tuple[MarketOption, ...]:
    """Return the options for single markets, the ports before the others."""
    records = list(registered_simulators.usable().values())
    ports = [
        MarketOption(record.name, f"--{_word(record.name)}-port", f"Port of {_title(record)}'s API; 0 takes any.")
        for record in records
    ]
    others = [
        MarketOption(record.name, _flag(record, option), option.help, option)
        for record in records
        for option in record.options
    ]
    return (*ports, *others)


def _flag(record: SimulatorRecord, option: SimulatorOption) -> str:
    key = _word(option.key)
    return f"--{key}" if record.is_first else f"--{_word(record.name)}-{key}"


def _word(name: str) -> str:
    return name.replace("_", "-")


def _title(record: SimulatorRecord) -> str:
    return record.title or record.name


def add_to(verb: Callable[..., None]) -> None:
    """Give a verb the options for single markets in place of its keywords, and its help the keys and the climates."""
    fixed = [one for one in inspect.signature(verb).parameters.values() if one.kind is not one.VAR_KEYWORD]
    at = [one.name for one in fixed].index(BEFORE)
    added = [
        inspect.Parameter(one.parameter, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.annotation)
        for one in of_markets()
    ]
    listed = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in fixed]
    signature = inspect.Signature([*listed[:at], *added, *listed[at:]], return_annotation=None)
    about: Any = verb
    about.__signature__ = signature
    about.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    about.__doc__ = _help()


def _about(climate: str) -> str:
    try:
        return climate_files.named(climate).about
    except ClimateError as error:
        return f"cannot be used: {error}"


def _help() -> str:
    keys = ", ".join(f"{name}_url, {name}_key" for name in registered_simulators.usable())
    climates = "\n".join(f"  {name:<14} {_about(name)}" for name in climate_files.names())
    return f"""Serve the simulated markets over the vendors' HTTP APIs until stopped.

The first line printed is JSON with the addresses and the keys they take: {keys}, control_url. Any other key is refused.

The climate real_processes runs the commands of rented containers on this machine, as you, at a --speed from 1 to 30.

\b
Climates:
{climates}
"""
