"""The simulated markets that register a record, by the market's name, in the entry-point group `gpubid.simulators`."""

import importlib.metadata
from collections.abc import Collection, Mapping

from agent.simulator.simulated_market import SimulatorRecord

GROUP = "gpubid.simulators"


def others(known: Collection[str]) -> Mapping[str, SimulatorRecord]:
    """Return the records of installed packages, by the market's name; none replaces a `known` market.

    Raises:
        ImportError: a package that brings one is broken.
    """
    found = {entry.name: entry for entry in importlib.metadata.entry_points(group=GROUP) if entry.name not in known}
    records = {name: entry.load() for name, entry in sorted(found.items())}
    for name, record in records.items():
        if not isinstance(record, SimulatorRecord) or record.name != name:
            raise ImportError(f"{found[name].value} is no simulated market named {name!r}; fix or remove its package.")
    return records
