"""The paths of a daemon's ledger and socket. An order to stop must work even if agent.toml is broken."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.config import document, loading
from agent.config.files import layers

_LEDGER = re.compile(r"^\s*\[\s*ledger\s*\]\s*(?:#[^\n]*)?$(?P<rest>.*?)(?=^\s*\[|\Z)", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"""^\s*path\s*=\s*["'](?P<path>[^"']+)["']""", re.MULTILINE)
_SERVER = re.compile(r"""^\s*["']?url["']?\s*=""", re.MULTILINE)
_SERVER_ON_ONE_LINE = re.compile(r"^\s*ledger\s*(?:\.\s*url\s*=|=\s*\{[^#\n]*\burl\s*=)", re.MULTILINE)
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class DaemonPaths:
    """The ledger's path, and the service manager's directory for files that end with the daemon."""

    ledger: Path
    runtime: Path | None
    ledger_server: None = None
    """Always None: a server's address cannot be read from a broken agent.toml."""
    is_on_server: bool = False
    """Whether the text names a ledger on a server, so that a daemon on another box may lead."""


def of_file(path: Path, environment: Mapping[str, str] | None = None) -> DaemonPaths:
    """Return the ledger's path as the text names it, else its default path; and whether the text names a server."""
    state, runtime = loading.directories(path, os.environ if environment is None else environment)
    files = layers.files(path)
    texts = [_text(file) for file in files]
    named = next((found for text in texts if (found := _ledger(text))), None)
    ledger = (state or Path()) / (named or document.LedgerTable().path)
    # What cannot be read may name one. Without any file there is nothing to lead.
    is_unread = any(not text and file.exists() and file.stat().st_size for file, text in zip(files, texts, strict=True))
    return DaemonPaths(ledger, runtime, is_on_server=is_unread or any(_names_server(text) for text in texts))


def _text(file: Path) -> str:
    try:
        return file.read_bytes()[:_MOST].decode("utf-8", "replace")
    except OSError:
        return ""


def _ledger(text: str) -> str:
    table = _LEDGER.search(text)
    named = _PATH.search(table["rest"]) if table else None
    return named["path"] if named else ""


def _names_server(text: str) -> bool:
    table = _LEDGER.search(text)
    return bool((table and _SERVER.search(table["rest"])) or _SERVER_ON_ONE_LINE.search(text))
