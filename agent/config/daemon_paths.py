"""The paths of a daemon's ledger and socket. An order to stop must work even if agent.toml is broken."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.config import document, loading
from agent.config.files import layers

_LEDGER = re.compile(
    r"""^\s*\[\s*["']?ledger["']?\s*\]\s*(?:#[^\n]*)?$(?P<rest>.*?)(?=^\s*\[|\Z)""", re.MULTILINE | re.DOTALL
)
_HEADER = re.compile(r"^\s*\[", re.MULTILINE)
_PATH = re.compile(r"""^\s*["']?path["']?\s*=\s*(?P<value>[^\n]*)""", re.MULTILINE)
_DOTTED_PATH = re.compile(r"""^\s*["']?ledger["']?\s*\.\s*["']?path["']?\s*=\s*(?P<value>[^\n]*)""", re.MULTILINE)
_ON_ONE_LINE = re.compile(r"""^\s*["']?ledger["']?\s*=\s*(?P<table>[^#\n]*)""", re.MULTILINE)
_PATH_ON_ONE_LINE = re.compile(r"""[{,]\s*["']?path["']?\s*=\s*(?P<value>.*)""")
_STRING = re.compile(r"""(?:"(?P<basic>[^"\\]+)"|'(?P<literal>[^']+)')(?!["'])""")
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
    is_unclear: bool = False
    """Whether the text names a ledger in a way that was not understood; `ledger` is then the default path."""

    def no_daemon(self) -> str:
        """Return that no daemon was found, without the claim that none runs if its ledger is unclear."""
        if not self.is_unclear:
            return "no daemon runs"
        return (
            f"no daemon answers on the ledger {self.ledger}, but the file names another in a way that cannot be read "
            '(write [ledger] and under it path = "...") and a daemon may run on that one'
        )


def of_file(path: Path, environment: Mapping[str, str] | None = None) -> DaemonPaths:
    """Return the ledger's path as the text names it, else its default path; and whether the text names a server."""
    state, runtime = loading.directories(path, os.environ if environment is None else environment)
    files = layers.files(path)
    texts = [_text(file) for file in files]
    found = [path for text in texts for path in _ledgers(text)]
    named = next((path for path in found if path), None)
    ledger = (state or Path()) / (named or document.LedgerTable().path)
    # What cannot be read may name one. Without any file there is nothing to lead.
    is_unread = any(not text and file.exists() and file.stat().st_size for file, text in zip(files, texts, strict=True))
    is_on_server = is_unread or any(_names_server(text) for text in texts)
    return DaemonPaths(ledger, runtime, is_on_server=is_on_server, is_unclear=bool(found) and named is None)


def _text(file: Path) -> str:
    try:
        return file.read_bytes()[:_MOST].decode("utf-8", "replace")
    except OSError:
        return ""


def _ledgers(text: str) -> Iterator[str]:
    """Yield each path of a ledger in the text, empty for one that is not understood."""
    try:
        table = tomllib.loads(text).get("ledger", {})
    except (ValueError, RecursionError):
        for written in _written_paths(text):
            string = _STRING.match(written)
            yield (string["basic"] or string["literal"]) if string else ""
        return
    path = table.get("path") if isinstance(table, dict) else ""
    if path is not None:
        yield path if isinstance(path, str) else ""


def _written_paths(text: str) -> Iterator[str]:
    """Yield the rest of the line behind each `path =` of the ledger, in every spelling of TOML."""
    before_tables = _HEADER.split(text, maxsplit=1)[0]
    for line in _ON_ONE_LINE.finditer(before_tables):
        path = _PATH_ON_ONE_LINE.search(line["table"])
        if path or not line["table"].rstrip().endswith("}"):
            yield path["value"] if path else ""
    yield from (line["value"] for line in _DOTTED_PATH.finditer(before_tables))
    table = _LEDGER.search(text)
    yield from (line["value"] for line in _PATH.finditer(table["rest"] if table else ""))


def _names_server(text: str) -> bool:
    table = _LEDGER.search(text)
    return bool((table and _SERVER.search(table["rest"])) or _SERVER_ON_ONE_LINE.search(text))
