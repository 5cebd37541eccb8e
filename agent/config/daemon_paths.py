"""The paths of a daemon's ledger and socket. An order to stop must work even if agent.toml is broken."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.config import document, loading
from agent.config.files import layers

_LEDGER = re.compile(r"^\s*\[ledger\]\s*$(?P<rest>.*?)(?=^\s*\[|\Z)", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"""^\s*path\s*=\s*["'](?P<path>[^"']+)["']""", re.MULTILINE)
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class DaemonPaths:
    """The ledger's path, and the service manager's directory for files that end with the daemon."""

    ledger: Path
    runtime: Path | None
    ledger_server: None = None
    """Always None: a server's address cannot be read from a broken agent.toml."""


def of_file(path: Path, environment: Mapping[str, str] | None = None) -> DaemonPaths:
    """Return the ledger's path as the text of a configuration names it, else its default path."""
    state, runtime = loading.directories(path, os.environ if environment is None else environment)
    named = next((ledger for file in layers.files(path) if (ledger := _ledger(file))), None)
    return DaemonPaths((state or Path()) / (named or document.LedgerTable().path), runtime)


def _ledger(file: Path) -> str:
    try:
        text = file.read_bytes()[:_MOST].decode("utf-8", "replace")
    except OSError:
        return ""
    table = _LEDGER.search(text)
    named = _PATH.search(table["rest"]) if table else None
    return named["path"] if named else ""
