"""The pointer at the newest manifest: it names a whole checkpoint always, and never goes back in progress."""

from __future__ import annotations

from typing import Any, Collection, Mapping

from agent.guard.bucket_notes import LATEST, BucketNotes
from agent.guard.checkpoints.manifest import FOLDER, Manifest, id_of

VERSION = 1
_TRIES = 5


def read_name(note: Mapping[str, Any]) -> str | None:
    """Return the name of the manifest that a pointer names, or None where it names none of ours."""
    name = note.get("manifest")
    if not isinstance(name, str) or not name.startswith(f"{FOLDER}/") or not name.endswith(".json"):
        return None
    return name if id_of(name[len(FOLDER) + 1 :]) is not None else None


def advance(notes: BucketNotes, manifest: Manifest, rejected: Collection[str]) -> bool:
    """Point at a manifest that is whole; return False where the pointer is further.

    A pointer at a manifest in `rejected` crashed the work: what was made after it replaces it.
    """
    wanted = {
        "version": VERSION,
        "manifest": manifest.name,
        "sequence": manifest.sequence,
        "progress": manifest.progress,
    }
    for _ in range(_TRIES):
        found = notes.read(LATEST)
        if found is None:
            if notes.write(LATEST, wanted, is_new=True):
                return True
            continue
        note, tag = found
        # An answer that was lost is not a refusal.
        if note == wanted:
            return True
        if not _is_ahead(manifest, note, rejected):
            return False
        if notes.write(LATEST, wanted, tag=tag):
            return True
    return False


def _is_ahead(manifest: Manifest, note: Mapping[str, Any], rejected: Collection[str]) -> bool:
    name = read_name(note)
    if name is None or name in rejected:
        return True
    there, ours = _number(note.get("progress")), manifest.progress
    if there is not None and ours is not None and there != ours:
        return ours > there
    return manifest.sequence > (_number(note.get("sequence")) or 0)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
