"""Shell completion of workloads and slots of the configuration, strategies, climates and kinds of events.

A configuration that cannot be read completes nothing, because a shell shows no errors between two key strokes.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from agent.cli.shared import session

MOST_SLOTS = 100
"""The most slots of a workload to offer. Other slots can be typed."""


def workloads(context: typer.Context, incomplete: str) -> list[str]:
    """Return the workloads of the configuration."""
    return _beginning(_tables(context, "workloads"), incomplete)


def places(context: typer.Context, incomplete: str) -> list[str]:
    """Return workloads, and the slots of the typed workload."""
    tables = _tables(context, "workloads")
    slots = [f"{name}/{index}" for name, table in tables.items() for index in range(_count(table))]
    return _beginning([*tables, *slots] if "/" in incomplete or len(tables) == 1 else tables, incomplete)


def strategies(context: typer.Context, incomplete: str) -> list[str]:
    """Return the installed strategies, and the stems of the configuration's own files."""
    from agent import strategy_files

    named = _document(context).get("strategies")
    folder = named.get("directory") if isinstance(named, dict) else None
    own = [file.stem for file in (_file(context).parent / folder).glob("*.toml")] if isinstance(folder, str) else []
    return _beginning({*strategy_files.installed(), *own}, incomplete)


def climates(incomplete: str) -> list[str]:
    """Return the climates of the simulator."""
    from agent.simulator import climate_files

    return _beginning(climate_files.names(), incomplete)


def kinds(incomplete: str) -> list[str]:
    """Return the kinds of events that the ledger keeps."""
    from agent.domain.record.event_kind import EventKind

    return _beginning((kind.value for kind in EventKind), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _file(context: typer.Context) -> Path:
    return Path(context.params.get("config") or os.environ.get("GPUBID_CONFIG") or session.DEFAULT_CONFIG)


def _document(context: typer.Context) -> Mapping[str, Any]:
    from agent.config import problems
    from agent.config.files import layers

    try:
        return layers.read(_file(context)).values
    except problems.ConfigError:
        return {}


def _tables(context: typer.Context, name: str) -> Mapping[str, Any]:
    tables = _document(context).get(name)
    return tables if isinstance(tables, dict) else {}


def _count(table: object) -> int:
    slots = table.get("slots", 1) if isinstance(table, dict) else 0
    return min(slots, MOST_SLOTS) if isinstance(slots, int) else 0
