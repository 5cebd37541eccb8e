"""Carries one checkpoint into the bucket: its files, then its manifest, then the pointer.

A death at any moment leaves the pointer at a whole checkpoint: it moves only after the manifest, and that is written
only after all files.
"""

from __future__ import annotations

from typing import Callable, Collection

from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints import manifest, pointer
from agent.guard.checkpoints.manifest import FOLDER, Manifest, ManifestFile, WrongManifest
from agent.guard.checkpoints.upload_plan import LARGE_BYTES, UploadPlan
from agent.guard.guard_clock import GuardClock
from agent.guard.object_store import LARGEST_MANIFEST_BYTES, DiskFailed, Refused

CHANGED = "the checkpoint changed while it was read"


class CheckpointUpload:
    """Uploads for one lease and run."""

    def __init__(self, notes: BucketNotes, clock: GuardClock, lease: str, run: int) -> None:
        """Write below the mailbox of `notes`."""
        self._notes = notes
        self._clock = clock
        self._lease = lease
        self._run = run

    def carry(
        self, plan: UploadPlan, rejected: Collection[str], known: object, keep: Callable[[UploadPlan], None]
    ) -> tuple[Manifest, bool]:
        """Write the parts that are missing; return the manifest, and whether the pointer names it. Raise StoreFailed.

        `rejected` and `known` are those of the pointer. `keep` is called with the plan when the disk should record how
        far it is.
        """
        begun = self._clock.now()
        folder = f"{FOLDER}/{manifest.checkpoint_id(plan.sequence, self._lease)}"
        for file in plan.aside.files:
            if file.seen.name not in plan.digests:
                key = self._notes.key(f"{folder}/{file.seen.name}")
                done = self._notes.store.upload(key, file.kept)
                plan.digests[file.seen.name], plan.tags[file.seen.name] = done.sha256, done.tag
                if file.seen.size_bytes >= LARGE_BYTES:
                    keep(plan)
        if not plan.aside.is_unchanged:
            raise DiskFailed(CHANGED)
        listed = self._manifest(plan, max(self._clock.now() - begun, 0.0))
        if listed.too_large(LARGEST_MANIFEST_BYTES):
            raise DiskFailed(f"the list of {len(listed.files)} files is too long")
        if not self._notes.write(listed.name, listed.note(), is_new=True):
            listed = self._there(listed)
        return listed, pointer.advance(self._notes, listed, rejected, known)

    def _there(self, listed: Manifest) -> Manifest:
        """Return the manifest in the bucket: a killed guard wrote it before the disk could record that."""
        found = self._notes.read(listed.name, LARGEST_MANIFEST_BYTES)
        try:
            there = manifest.read(found[0], listed.name) if found is not None else listed
        except WrongManifest as mistake:
            raise Refused(f"{listed.name} is there: {mistake}") from None
        # A guard of an earlier release wrote no tags.
        if _untagged(there) != _untagged(listed):
            raise Refused(f"{listed.name} is there, and names other files")
        return there

    def _manifest(self, plan: UploadPlan, uploaded_seconds: float) -> Manifest:
        names = [(file.seen.name, file.seen.size_bytes) for file in plan.aside.files]
        return Manifest(
            plan.sequence,
            self._lease,
            self._run,
            plan.progress,
            round(plan.wall_seconds, 3),
            round(plan.boot_seconds, 3),
            round(max(plan.took_seconds, 0.0), 3),
            round(uploaded_seconds, 3),
            tuple(ManifestFile(name, size, plan.digests[name], plan.tags.get(name, "")) for name, size in names),
        )


def _untagged(manifest: Manifest) -> list[tuple[str, int, str]]:
    return [(file.path, file.size_bytes, file.sha256) for file in manifest.files]
