"""The checkpoints of a script: the work saves its count, the guard carries it, on its own or because it is asked."""

import hashlib

from agent.guard import bucket_notes, guard_status
from agent.guard.bucket_notes import ORDER, BucketNotes
from agent.guard.checkpoints import manifest as manifests
from agent.guard.checkpoints import pointer
from agent.guard.checkpoints.manifest import Manifest, ManifestFile
from agent.guard.guard_settings import GuardSettings
from agent.guard.object_store import Fetched, StoreFailed
from tests.disasters.guards.bucket import md5
from tests.disasters.guards.container_script import ContainerScript, Ground
from tests.disasters.story import Guarded

LOOK_SECONDS, RETRY_SECONDS = 10.0, 30.0
MOST_BYTES = 1 << 22


class CarryingScript(ContainerScript):
    """Carries checkpoints."""

    def __init__(self, settings: GuardSettings, script: Guarded, notes: BucketNotes, ground: Ground) -> None:
        super().__init__(settings, script, notes, ground)
        self._order: str | None = None
        self._order_seen: Fetched | None = None
        self._is_making = False

    def terminate(self) -> None:
        """A last checkpoint, as far as the notice lets it."""
        if self._is_alive and self._terminated_at is None:
            self._terminated_at = self._ground.now()
            self._status.phase = guard_status.ENDING
            self._make(None)

    def _is_due(self) -> None:
        if not self._is_making and self._since is not None:
            self._make(None)

    def _make(self, order: str | None) -> None:
        """Have the work write a checkpoint, and carry it."""
        if self._is_making or self._since is None:
            return
        self._is_making = True
        count, asked = self.count, self._ground.now()

        def made() -> None:
            self.disk.saved = count
            self._status.phase = self._phase(guard_status.UPLOADING)
            self._soon(self.script.upload, lambda: self._carried(order, count, asked))

        self._soon(self.script.takes, made)

    def _carried(self, order: str | None, count: float, asked: float) -> None:
        if self._since is None:
            # The work has ended meanwhile, and the carrying at its end takes its last files.
            return
        if not self._carry(order, count, asked):
            self._soon(RETRY_SECONDS, lambda: self._carried(order, count, asked))
            return
        self._is_making = False
        self._status.phase = self._phase(guard_status.RUNNING)
        self._tell()
        if self._order is not None and self._order != self.disk.answered:
            self._make(self._order)
        else:
            self._soon(self.settings.interval_at(self._ground.now() - self._begun), self._is_due)

    def _carry(self, order: str | None, count: float, asked: float) -> bool:
        """Write the file, the manifest and the pointer; return whether the bucket took them."""
        try:
            made = self._written(count, asked)
            if not self.lies.says("pointer_behind"):
                pointer.advance(self._notes, made, (), self.disk.manifest or None)
            self._list.prune(self.settings.keep, made)
        except StoreFailed:
            return False
        self.disk.manifest, self.disk.sequence = made.name, made.sequence
        self.disk.counts[made.name] = count
        self.disk.answered = order or self.disk.answered
        lag = self._ground.now() - asked
        self._status.set(
            manifest=made.name,
            checkpoint_bytes=made.size_bytes,
            checkpoint_took_seconds=self.script.takes,
            upload_seconds=self.script.upload,
            upload_lag_seconds=round(lag, 3),
            answered=self.disk.answered,
        )
        return True

    def _written(self, count: float, asked: float) -> Manifest:
        self.disk.sequence = max(self._list.last_sequence(), self.disk.sequence) + 1
        body = f"{count:.3f}".encode()
        stored = self.lies.stored(body)
        name = manifests.checkpoint_id(self.disk.sequence, self.settings.lease)
        if stored is not None:
            self._notes.store.put(self._notes.key(f"ckpt/{name}/0/state"), stored)
        file = ManifestFile("0/state", len(body), hashlib.sha256(body).hexdigest(), md5(body))
        wall = 9e11 if self.lies.says("future_manifest") else asked
        made = Manifest(
            self.disk.sequence,
            self.settings.lease,
            self.settings.run,
            round(count, 3),
            wall,
            asked,
            self.script.takes,
            self.script.upload,
            (file,),
        )
        self._notes.write(made.name, made.note(), is_new=True)
        return made

    def _look(self) -> None:
        self._soon(LOOK_SECONDS, self._look)
        try:
            found = self._notes.store.get(self._notes.key(ORDER), MOST_BYTES)
        except StoreFailed:
            return
        if found is None or found is self._order_seen:
            return
        self._order_seen = found
        order = bucket_notes.parsed(found.body)
        wanted, is_ours = order.get("checkpoint"), order.get("lease") in (None, self.settings.lease)
        if not is_ours or not isinstance(wanted, str) or wanted == self._order or self.lies.says("deaf"):
            return
        self._order = wanted
        if self.lies.says("false_answer"):
            self._status.set(answered=wanted)
            self._tell()
        else:
            self._make(wanted)
