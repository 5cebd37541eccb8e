"""Every simulated market, by the name of the market in agent.toml.

Those of other packages come from the entry-point group `gpubid.simulators`. One of ours is a folder here with a
`vendor_record.py`; the group names it too, and no package can replace it.
"""

import importlib.metadata
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from agent.simulator.simulator_record import SimulatorRecord

GROUP = "gpubid.simulators"


@cache
def _entries() -> Mapping[str, importlib.metadata.EntryPoint]:
    """Read the installed records, only once, because a rehearsal begins many markets."""
    entries = importlib.metadata.entry_points(group=GROUP)
    found = {entry.name: entry for entry in entries if not _is_ours(entry)}
    # Ours are found by their folders: the metadata of an editable install may be of another commit.
    ours = sorted(file.parent.name for file in Path(__file__).parent.glob("*/vendor_record.py"))
    values = {name: f"{__package__}.{name}.vendor_record:RECORD" for name in ours}
    found |= {name: importlib.metadata.EntryPoint(name, value, GROUP) for name, value in values.items()}
    return dict(sorted(found.items()))


@cache
def _record(name: str) -> SimulatorRecord:
    entry = _entries()[name]
    found = entry.load()
    if not isinstance(found, SimulatorRecord) or found.name != name:
        raise ImportError(f"{entry.value} is no simulated market named {name!r}; fix or remove its package.")
    return found


def installed() -> Mapping[str, SimulatorRecord]:
    """Return every record by the market's name, the first market first.

    Raises:
        ImportError: a package that brings one is broken.
    """
    return _sorted(_entries())


def usable() -> Mapping[str, SimulatorRecord]:
    """Return the records as `installed`, without those of broken packages: for help and for names."""
    try:
        return installed()
    except Exception:  # noqa: BLE001 - whatever a foreign package raises; to begin its market says why
        return _sorted(name for name, entry in _entries().items() if _is_ours(entry))


def _sorted(names: Iterable[str]) -> Mapping[str, SimulatorRecord]:
    records = {name: _record(name) for name in names}
    return dict(sorted(records.items(), key=lambda named: not (named[1].is_first and _is_ours(_entries()[named[0]]))))


def _is_ours(entry: importlib.metadata.EntryPoint) -> bool:
    return entry.value.startswith(f"{__package__}.")
