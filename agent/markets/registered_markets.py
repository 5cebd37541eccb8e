"""Every installed market, by the name of its table in agent.toml; the composition root connects only through here.

Markets of other packages come from the entry-point group `gpubid.markets`. A market of ours is a folder here with a
`vendor_record.py`; the group names it too, and no package can replace it.
"""

import importlib.metadata
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agent.markets.market_record import MarketRecord

GROUP = "gpubid.markets"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")


class BrokenMarket(Exception):
    """The market of an installed package cannot be used; the text says why and what to do."""

    def __init__(self, entry: importlib.metadata.EntryPoint, sentence: str) -> None:
        """Name the entry point that leads to it."""
        super().__init__(f"{entry.name}: {sentence}")
        self.entry, self.sentence = entry, sentence


def shipped() -> tuple[str, ...]:
    """Return the names of the markets that are part of gpubid."""
    return tuple(sorted(file.parent.name for file in Path(__file__).parent.glob("*/vendor_record.py")))


@cache
def _entries() -> Mapping[str, importlib.metadata.EntryPoint]:
    entries = importlib.metadata.entry_points(group=GROUP)
    # Ours are found by their folders: the metadata of an editable install may be of another commit.
    found = {entry.name: entry for entry in entries if not entry.value.startswith(f"{__package__}.")}
    ours = {name: f"{__package__}.{name}.vendor_record:RECORD" for name in shipped()}
    found |= {name: importlib.metadata.EntryPoint(name, value, GROUP) for name, value in ours.items()}
    return dict(sorted(found.items()))


def names() -> tuple[str, ...]:
    """Return the names of the installed markets."""
    return tuple(_entries())


def keeps_logs(name: str) -> bool:
    """Return whether a market keeps the output of a container; true for one that is not installed here."""
    return name not in names() or record(name).keeps_logs


def shell_by(name: str) -> str:
    """Return how to open a shell at a market that gives no address, or an empty text."""
    return record(name).shell_by if name in names() else ""


@cache
def record(name: str) -> MarketRecord:
    """Return the record of an installed market.

    Raises:
        BrokenMarket: the package that brings it is broken.
        KeyError: no market of that name is installed.
    """
    entry = _entries()[name]
    try:
        found = entry.load()
    except Exception as error:
        sentence = f"cannot be imported ({type(error).__name__}); reinstall or remove the package that brings it"
        raise BrokenMarket(entry, sentence) from error
    if not isinstance(found, MarketRecord) or found.name != name or not _NAME.fullmatch(name):
        sentence = f"is no record of a market named {name!r}; fix or remove the package that brings it"
        raise BrokenMarket(entry, sentence)
    return found


def installed() -> Mapping[str, MarketRecord]:
    """Return the records of all installed markets, by name.

    Raises:
        BrokenMarket: a package that brings one is broken.
    """
    return {name: record(name) for name in names()}
