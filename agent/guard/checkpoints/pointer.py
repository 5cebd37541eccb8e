"""The pointer at the newest manifest: it always names a whole checkpoint.

Two containers of one slot may both carry: the checkpoint with more progress counts. A container's checkpoint is newer
than its own earlier ones and than the one that it began from, whatever progress it shows.
"""

from __future__ import annotations

from typing import Any, Collection, Mapping

from agent.guard.bucket_notes import LATEST, BucketNotes
from agent.guard.checkpoints.manifest import FOLDER, MOST_SEQUENCE, Manifest, checkpoint_id, id_of
from agent.guard.object_store import TooLarge

VERSION = 1
_TRIES = 5
_MOST_PROGRESS = 1e15


def read_name(note: Mapping[str, Any]) -> str | None:
    """Return the name of the manifest that a pointer names, or None where it names none of ours."""
    name = note.get("manifest")
    if not isinstance(name, str) or not name.startswith(f"{FOLDER}/") or not name.endswith(".json"):
        return None
    return name if id_of(name[len(FOLDER) + 1 :]) is not None else None


def advance(notes: BucketNotes, manifest: Manifest, rejected: Collection[str], known: object = None) -> bool:
    """Point at a manifest that is whole; return False where the pointer is further.

    A manifest in `rejected` crashed the work: a pointer at it is replaced by any later one. `known` is the name of
    the manifest that this container began from, or carried last.
    """
    wanted = {
        "version": VERSION,
        "manifest": manifest.name,
        "sequence": manifest.sequence,
        "progress": manifest.progress,
    }
    for _ in range(_TRIES):
        try:
            found = notes.read(LATEST)
        except TooLarge:
            # Nothing of ours is that large: it names no checkpoint.
            return notes.write(LATEST, wanted)
        if found is None:
            if notes.write(LATEST, wanted, is_new=True):
                return True
            continue
        note, tag = found
        # An answer that was lost is not a refusal.
        if note == wanted:
            return True
        if not _is_ahead(manifest, note, rejected, known):
            return False
        if notes.write(LATEST, wanted, tag=tag):
            return True
    return False


def _is_ahead(manifest: Manifest, note: Mapping[str, Any], rejected: Collection[str], known: object) -> bool:
    name = read_name(note)
    if name is None or name in rejected:
        return True
    there, ours = _number(note.get("progress"), -_MOST_PROGRESS, _MOST_PROGRESS), manifest.progress
    is_past = name == known or _is_of(name, manifest.lease)
    if not is_past and there is not None and ours is not None and there != ours:
        return ours > there
    return manifest.sequence > (_number(note.get("sequence"), 0, MOST_SEQUENCE) or 0)


def _is_of(name: str, lease: str) -> bool:
    found = id_of(name[len(FOLDER) + 1 :])
    return found is not None and found[1] == checkpoint_id(found[0], lease)


def _number(value: object, least: float, most: float) -> float | None:
    """Return a number within its bounds, or None. The bounds are compared first: some integers exceed every float."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and least <= value <= most else None  # type: ignore[arg-type,operator]
