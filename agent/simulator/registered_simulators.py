"""The simulated markets that register a record, by the market's name, in the entry-point group `gpubid.simulators`."""

import importlib.metadata
from collections.abc import Collection, Mapping
from functools import cache

from agent.simulator.simulated_market import SimulatorRecord

GROUP = "gpubid.simulators"


@cache
def _entries() -> tuple[importlib.metadata.EntryPoint, ...]:
    """Read what is installed, once: a rehearsal begins many markets."""
    return tuple(importlib.metadata.entry_points(group=GROUP))


def others(known: Collection[str]) -> Mapping[str, SimulatorRecord]:
    """Return the records of installed packages, by the market's name; none replaces a `known` market.

    Raises:
        ImportError: a package that brings one is broken.
    """
    found = {entry.name: entry for entry in _entries() if entry.name not in known}
    records = {name: entry.load() for name, entry in sorted(found.items())}
    for name, record in records.items():
        if not isinstance(record, SimulatorRecord) or record.name != name:
            raise ImportError(f"{found[name].value} is no simulated market named {name!r}; fix or remove its package.")
    return records
