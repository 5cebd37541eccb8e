"""The manifests in the bucket, and the removal of checkpoints that are no longer kept."""

from __future__ import annotations

from typing import Collection, Iterator

from agent.guard.bucket_notes import LATEST, BucketNotes
from agent.guard.checkpoints import manifest, pointer
from agent.guard.checkpoints.manifest import FOLDER, Manifest, WrongManifest, checkpoint_id, id_of
from agent.guard.object_store import LARGEST_MANIFEST_BYTES, Listed, TooLarge

MOST_LISTED = 50_000
STRANGERS_SECONDS = 86_400.0
"""Younger files without a manifest are kept: they may belong to an upload of another container that still goes on."""


class CheckpointList:
    """The checkpoints of this run in the bucket."""

    def __init__(self, notes: BucketNotes, lease: str) -> None:
        """List below the mailbox of `notes`; `lease` is ours."""
        self._notes = notes
        self._lease = lease

    def newest(self) -> Manifest | None:
        """Return the manifest that the pointer names; without a usable pointer, the newest that is whole."""
        name = self._pointed_name()
        return (self.read(name) if name is not None else None) or self.before(None)

    def pointed(self) -> Manifest | None:
        """Return the manifest that the pointer names where every file of it is there with its size, else None."""
        name = self._pointed_name()
        named = self.read(name) if name is not None else None
        return named if named is not None and _is_whole(named, self._rows(named.id)) else None

    def before(self, later: Manifest | None) -> Manifest | None:
        """Return the newest manifest that is older than one, or the newest of all."""
        for begun in _blocks(later.sequence) if later is not None else ("",):
            found = self._before(later, self._rows(begun))
            if found is not None:
                return found
        return None

    def _before(self, later: Manifest | None, rows: dict[str, Listed]) -> Manifest | None:
        for name in sorted((name for name in rows if _is_manifest(name)), reverse=True):
            found = self.read(f"{FOLDER}/{name}") if later is None or name < later.name[len(FOLDER) + 1 :] else None
            if found is not None and _is_whole(found, rows):
                return found
        return None

    def read(self, name: str) -> Manifest | None:
        """Return a manifest by its name in the mailbox, or None where it is not there or cannot be believed."""
        try:
            found = self._notes.read(name, LARGEST_MANIFEST_BYTES)
            return manifest.read(found[0], name) if found is not None else None
        except (WrongManifest, TooLarge):
            return None

    def last_sequence(self) -> int:
        """Return the highest sequence in the bucket, of whole checkpoints and begun ones."""
        ids = (id_of(name.partition("/")[0]) for name in self._rows())
        return max((each[0] for each in ids if each is not None), default=0)

    def cut_off(self) -> int:
        """Return how many uploads after the newest whole checkpoint were begun and not finished by others than us."""
        rows = self._rows()
        newest = max((name for name in rows if _is_manifest(name)), default="")
        folders = {name.partition("/")[0] for name in rows if "/" in name}
        return sum(f"{folder}.json" > newest and not self._is_ours(folder) for folder in folders if id_of(folder))

    def prune(self, keep: int, current: Manifest) -> None:
        """Remove all but the newest `keep` checkpoints and the pointer's: each manifest before its files."""
        rows = self._rows()
        whole = sorted((name for name in rows if _is_manifest(name)), reverse=True)
        pointed = self._pointed_name()
        kept = {*whole[:keep], current.name[len(FOLDER) + 1 :], (pointed or "")[len(FOLDER) + 1 :]}
        for name in whole:
            if name not in kept:
                self._notes.store.delete(self._notes.key(f"{FOLDER}/{name}"))
        kept_ids = {name[: -len(".json")] for name in kept}
        for name, row in rows.items():
            folder = name.partition("/")[0]
            if "/" in name and folder not in kept_ids and self._may_go(folder, row, whole, current):
                self._notes.store.delete(row.key)

    def abort_stale(self) -> None:
        """Drop unfinished uploads of our own lease, and of others after a day."""
        prefix = self._notes.key(f"{FOLDER}/")

        def is_stale(key: str, age_seconds: float) -> bool:
            return self._is_ours(key[len(prefix) :].partition("/")[0]) or age_seconds > STRANGERS_SECONDS

        self._notes.store.abort_stale(prefix, is_stale)

    def _pointed_name(self) -> str | None:
        """Return the name of the manifest that the pointer names, or None without a usable pointer."""
        try:
            found = self._notes.read(LATEST)
        except TooLarge:
            return None
        return pointer.read_name(found[0]) if found is not None else None

    def _may_go(self, folder: str, row: Listed, whole: Collection[str], current: Manifest) -> bool:
        if f"{folder}.json" in whole or row.age_seconds > STRANGERS_SECONDS:
            return True
        return self._is_ours(folder) and folder < current.id

    def _is_ours(self, folder: str) -> bool:
        found = id_of(folder)
        return found is not None and found[1] == checkpoint_id(found[0], self._lease)

    def _rows(self, begun: str = "") -> dict[str, Listed]:
        """Return the objects of checkpoints whose names begin so, at most `MOST_LISTED`, by their names."""
        prefix = self._notes.key(f"{FOLDER}/")
        return {row.key[len(prefix) :]: row for row in self._notes.store.list(f"{prefix}{begun}", MOST_LISTED)}


def _blocks(sequence: int) -> Iterator[str]:
    """Yield the beginnings of the names up to a sequence, the nearest first: a whole listing may be cut off before."""
    digits = f"{sequence:08d}"
    yield digits[:-1]
    for length in range(len(digits) - 1, 0, -1):
        for digit in range(int(digits[length - 1]) - 1, -1, -1):
            yield f"{digits[: length - 1]}{digit}"


def _is_manifest(name: str) -> bool:
    return name.endswith(".json") and id_of(name) is not None


def _is_whole(found: Manifest, rows: dict[str, Listed]) -> bool:
    def size(path: str) -> int | None:
        row = rows.get(f"{found.id}/{path}")
        return row.size_bytes if row is not None else None

    return all(size(file.path) == file.size_bytes for file in found.files)
