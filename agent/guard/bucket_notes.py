"""The small JSON objects of one run in the bucket: read with bounds, written whole."""

from __future__ import annotations

import json
from typing import Any, Mapping

from agent.guard.object_store import LARGEST_MANIFEST_BYTES, LARGEST_NOTE_BYTES, ObjectStore, Refused

VERSION = 1
END, LATEST, ORDER = "end.json", "latest.json", "order.json"
UNKNOWN_CONDITION_CODES = frozenset({400, 501})
"""The answers of stores that do not support conditional writes."""


def beat_name(lease: str) -> str:
    """Return the name of a container's beat: two containers of one slot share a mailbox while it moves."""
    return f"beat-{lease}.json"


def advice_name(lease: str) -> str:
    """Return the name of the daemon's advice for a container."""
    return f"advice-{lease}.json"


class BucketNotes:
    """Notes below the mailbox's root."""

    def __init__(self, store: ObjectStore, root: str) -> None:
        """Read and write below `root`."""
        self.store = store
        self.root = root

    def key(self, name: str) -> str:
        """Return the key of a name in the mailbox."""
        return f"{self.root}/{name}"

    def read(self, name: str, most_bytes: int = LARGEST_NOTE_BYTES) -> tuple[Mapping[str, Any], str] | None:
        """Return a note and the tag of its version; a note that is not ours counts as empty, with its tag."""
        found = self.store.get(self.key(name), most_bytes)
        return None if found is None else (parsed(found.body), found.tag)

    def write(self, name: str, note: Mapping[str, Any], *, tag: str | None = None, is_new: bool = False) -> bool:
        """Write a note; return False if the present one is not the version `tag`, or exists although `is_new`.

        The present note is read first: some stores refuse conditions, and some accept them without keeping them.
        """
        body = encoded(note)
        key = self.key(name)
        if is_new or tag is not None:
            found = self.store.get(key, LARGEST_MANIFEST_BYTES)
            if (found.tag if found is not None else None) != tag:
                return False
        try:
            return self.store.put(key, body, tag=tag, is_new=is_new)
        except Refused as refusal:
            if refusal.status not in UNKNOWN_CONDITION_CODES or not (is_new or tag is not None):
                raise
        return self.store.put(key, body)


def encoded(note: Mapping[str, Any]) -> bytes:
    """Return a note as it is written. Half a pair of UTF-16 becomes its escape, which is JSON too."""
    return json.dumps(note, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def parsed(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a text if it has our version; else an empty one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and value.get("version") == VERSION else {}
