"""The climates by name, read from climates/*.toml and from the records of markets that bring some.

climates/recorded.toml sets nothing, so it is the calibrated market. Every other climate sets the keys in which it
differs. The table `[NAME]` is for the market of that name alone; its record says which keys that has.
"""

import dataclasses
import functools
import importlib.resources
import tomllib
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from agent.simulator import registered_simulators
from agent.simulator.climate import Climate, ClimateError, Demand, Deposit, Spike, Strike

_T = TypeVar("_T")
_PARTS: dict[str, tuple[str, type[Any]]] = {
    "spike": ("spikes", Spike),
    "strike": ("strikes", Strike),
    "deposit": ("deposits", Deposit),
}
_FOLDER = importlib.resources.files("agent.simulator") / "climates"


def names() -> list[str]:
    """Return the names of the climates that are installed."""
    return sorted({*_shipped(), *_brought()})


@functools.cache
def _shipped() -> frozenset[str]:
    return frozenset(path.name.removesuffix(".toml") for path in _FOLDER.iterdir() if path.name.endswith(".toml"))


def _brought() -> Mapping[str, str]:
    """Return the TOML of the climates that packages bring; none replaces one of ours."""
    records = registered_simulators.usable().values()
    return {name: text for record in records for name, text in record.climates.items() if name not in _shipped()}


@functools.cache
def named(name: str) -> Climate:
    """Return a climate by its name."""
    if name not in names():
        raise ClimateError(f"there is no climate {name!r}; known: {', '.join(names())}")
    if name in _shipped():
        return parse((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), name)
    return parse(_brought()[name], name)


def parse(text: str, name: str) -> Climate:
    """Read a climate from TOML. An unknown key is an error."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClimateError(f"{name}: not TOML ({error}).") from error
    values: dict[str, Any] = {"name": name}
    records = registered_simulators.usable()
    for key, value in document.items():
        table = records[key].climate_table if key in records else None
        if table is not None:
            values["tables"] = (*values.get("tables", ()), _made(table, value, f"{name}: [{key}]"))
        elif key == "demand":
            values[key] = _made(Demand, value, f"{name}: [{key}]")
        elif key in _PARTS:
            field, part = _PARTS[key]
            values[field] = tuple(_made(part, row, f"{name}: [[{key}]]") for row in value)
        else:
            values[key] = tuple(value) if isinstance(value, list) else value
    climate = _made(Climate, values, name)
    if not isinstance(climate.processes, bool):
        raise ClimateError(f"{name}: processes: must be true or false, not {climate.processes!r}.")
    return climate


def _made(kind: type[_T], values: dict[str, Any], where: str) -> _T:
    """Build a part from its table, lists as tuples."""
    known = [field.name for field in dataclasses.fields(cast(Any, kind))]
    for key in values:
        if key not in known:
            raise ClimateError(f"{where}: unknown key {key!r}; known: {', '.join(known)}.")
    try:
        return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})
    except (TypeError, ValueError) as error:
        raise ClimateError(f"{where}: {error}") from error
