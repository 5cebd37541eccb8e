"""A guard without a process: it does on the world's clock what the program in a container does, in the same formats.

Notes, manifests, the pointer and the dead man's count are those of the program itself. The work is a counter: one more
for each second of running. What it saved last is on its disk, what the guard carried is in the bucket as well.
"""

import contextlib
import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from agent.guard import bucket_notes, guard_status
from agent.guard.bucket_notes import END, ORDER, BucketNotes
from agent.guard.checkpoints import manifest as manifests
from agent.guard.checkpoints import pointer
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.checkpoints.manifest import Manifest, ManifestFile
from agent.guard.deadman import deadman_switch
from agent.guard.deadman.deadman_switch import DeadmanSwitch
from agent.guard.guard_settings import DeadmanSettings, GuardSettings
from agent.guard.guard_status import GuardStatus
from agent.guard.object_store import Fetched, StoreFailed
from agent.guard.work_end import WorkEnd
from tests.disasters.guards.bucket import md5
from tests.disasters.guards.host_lies import HostLies
from tests.disasters.story import Guarded

ALIVE = "alive.json"
BEAT_SECONDS, LOOK_SECONDS, RETRY_SECONDS, ALIVE_SECONDS = 60.0, 10.0, 30.0, 30.0
RESTORE_SECONDS, BEGIN_SECONDS, CHECK_SECONDS, READY_SECONDS = 5.0, 1.0, 4.0, 15.0
PATIENCE_SECONDS, FAILED_SECONDS = 600.0, 300.0
MOST_BYTES = 1 << 22


class Ground(Protocol):
    """What a script asks of the world around its container."""

    @property
    def gpu(self) -> str:
        """Return the model, as its driver writes it."""

    @property
    def memory_mb(self) -> int:
        """Return the memory of a GPU."""

    def now(self) -> float:
        """Return the world's time."""

    def put(self, at: float, act: Callable[[], None]) -> None:
        """Let something happen at a time."""

    def exit(self) -> None:
        """Let the container end."""

    def end(self, *, destroys: bool) -> None:
        """Ask the market to stop the instance, or to end it, by the instance's own key."""

    def note_done(self, root: str) -> None:
        """See that work is done, and that the bucket has its end."""


@dataclasses.dataclass(slots=True)
class Disk:
    """What the disk of an instance keeps."""

    is_begun: bool = False
    """Whether the work ever began on it."""
    saved: float | None = None
    """The count of the last checkpoint on it; None: there is none."""
    manifest: str = ""
    """The last checkpoint that the guard carried from it, or restored."""
    counts: dict[str, float] = dataclasses.field(default_factory=dict)
    """The count of each checkpoint that it carried, by the name of its manifest."""
    told: str = ""
    """The last checkpoint of its own that a beat named in the bucket."""
    sequence: int = 0
    answered: str | None = None
    deadman: Mapping[str, Any] | None = None
    end: WorkEnd | None = None


class Status(GuardStatus):
    """The status, with the count of the work."""

    def __init__(self, lease: str, count: Callable[[], float | None]) -> None:
        super().__init__(lease, None, Path("/"))
        self._count = count

    def progress(self) -> float | None:
        return self._count()

    @property
    def manifest(self) -> str:
        """Return the checkpoint that the next beat names."""
        return self._fields["manifest"] or ""


class ScriptedGuard:
    """The guard of one instance, over all of its starts; to the simulator, the instance's processes."""

    def __init__(self, settings: GuardSettings, script: Guarded, notes: BucketNotes, ground: Ground) -> None:
        self.settings = settings
        self.script = script
        self.disk = Disk()
        self.lies = HostLies()
        self.starts = 0
        self._notes = notes
        self._ground = ground
        self._list = CheckpointList(notes, settings.lease)
        self._status = Status(settings.lease, self._told_count)
        self._lines: list[tuple[float, str]] = []
        self._is_alive = False
        self._since: float | None = None
        self._base = 0.0
        self._begun = 0.0
        self._order: str | None = None
        self._is_making = self._is_restored = False
        self._order_seen: Fetched | None = None
        self._switch: DeadmanSwitch | None = None
        self._terminated_at: float | None = None
        self._died: tuple[bool, float] | None = None
        self._called = False

    def tell(self, lie: str) -> None:
        """Begin to lie; a note that a host writes once is written now."""
        self.lies.tell(lie)
        now, lease = self._ground.now(), self.settings.lease
        notes = {
            "false_done": (END, WorkEnd(0, was_stopped=False).note(lease, (0,), None, [])),
            "false_end": (f"ended-{lease}.json", WorkEnd(1, was_stopped=False).note(lease, (), None, [])),
            "false_switch": (
                f"deadman-{lease}.json",
                {"version": 1, "lease": lease, "silent_seconds": 9000.0, "written": int(now - 9000.0)},
            ),
        }
        if lie in notes:
            name, note = notes[lie]
            with contextlib.suppress(StoreFailed):
                self._notes.store.put(self._notes.key(name), bucket_notes.encoded(note))

    # --- the simulator's side ---------------------------------------------------------------------------------------
    @property
    def root(self) -> str:
        """Return its folder in the bucket."""
        return self._notes.root

    @property
    def ports(self) -> Mapping[int, int]:
        return {}

    @property
    def has_ended(self) -> bool:
        return False

    @property
    def is_busy(self) -> bool:
        return self._since is not None

    def printed(self) -> tuple[int, Sequence[tuple[float, str]]]:
        return 0, [line for line in self._lines if line[0] <= self._ground.now()]

    def wipe(self) -> None:
        self.disk = Disk()

    def remove(self) -> None:
        """There is nothing on this machine."""

    def terminate(self) -> None:
        """A last checkpoint, as far as the notice lets it."""
        if self._is_alive and self._terminated_at is None:
            self._terminated_at = self._ground.now()
            self._status.phase = guard_status.ENDING
            self._make(None)

    def kill(self) -> None:
        if self._is_alive:
            now = self._ground.now()
            told_at = self._terminated_at
            self._died = (told_at is not None, now - told_at if told_at is not None else 0.0)
        self._is_alive = False
        self._since = self._terminated_at = None

    # --- a start ----------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin as a container begins."""
        self.kill()
        self.starts += 1
        self._is_alive, self._is_making, self._is_restored = True, False, False
        self._order, self._order_seen = None, None
        self._lines = []
        if self._died is not None:
            seen, seconds = self._died
            self._status.set(notice={"sigterm_seen": seen, "seconds": round(seconds, 2)})
        self._status.phase = guard_status.RESTORING
        if self.settings.deadman is not None:
            self._switch = DeadmanSwitch(self.settings.deadman.after_seconds, self.disk.deadman)
            self._soon(ALIVE_SECONDS, lambda: self._watch(self.settings.deadman))
        self._beat()
        if self._ended_elsewhere():
            self._sleep()
            return
        if self.settings.acceptance is not None:
            self._soon(CHECK_SECONDS, self._check)
        self._soon(LOOK_SECONDS, self._look)
        self._find(self._ground.now() + PATIENCE_SECONDS)

    def _ended_elsewhere(self) -> bool:
        if self.disk.end is not None and self.disk.end.is_done(self.settings.done_codes):
            return True
        try:
            found = self._notes.read(END)
        except StoreFailed:
            return False
        return found is not None and found[0].get("done") is True

    def _find(self, until: float) -> None:
        """Find where the work begins: on its own disk, or at the newest checkpoint that is whole."""
        newest = None
        try:
            newest = self._list.newest()
            while newest is not None and not self._is_whole(newest):
                newest = self._list.before(newest)
        except StoreFailed as failure:
            if self.settings.manifest_exists and not self.disk.is_begun:
                if self._ground.now() >= until:
                    self._refuse(str(failure))
                else:
                    self._soon(LOOK_SECONDS, lambda: self._find(until))
                return
        is_further = newest is not None and newest.lease != self.settings.lease and newest.sequence > self.disk.sequence
        if self.disk.is_begun and not is_further:
            self._soon(BEGIN_SECONDS, lambda: self._begin(self.disk.saved or 0.0))
        elif newest is not None:
            self._soon(RESTORE_SECONDS, lambda: self._restored(newest))
        else:
            self._soon(BEGIN_SECONDS, lambda: self._begin(0.0))

    def _is_whole(self, made: Manifest) -> bool:
        for file in made.files:
            found = self._notes.store.get(self._notes.key(f"ckpt/{made.id}/{file.path}"), MOST_BYTES)
            if found is None or found.tag != file.sha256:
                return False
        return True

    def _restored(self, newest: Manifest) -> None:
        self._is_restored = True
        self.disk.manifest, self.disk.sequence = newest.name, max(newest.sequence, self.disk.sequence)
        self.disk.saved = newest.progress or 0.0
        self._status.set(restored=newest.name, manifest=newest.name, restore_seconds=RESTORE_SECONDS)
        self._begin(self.disk.saved)

    def _begin(self, count: float) -> None:
        if self._ended_elsewhere():
            self._sleep()
            return
        now = self._ground.now()
        self.disk.is_begun = True
        self._base, self._since, self._begun = count, now, now
        self._lines.append((now + READY_SECONDS, "ready"))
        if self._status.phase == guard_status.RESTORING:
            self._status.phase = guard_status.RUNNING
        self._tell()
        self._soon(self.settings.interval_at(0.0), self._is_due)
        if self.script.needs:
            self._soon(max(self.script.needs - count, 0.0), self._finish)

    def _refuse(self, why: str) -> None:
        self._status.phase = guard_status.FAILED
        self._tell()
        self._lines.append((self._ground.now(), f"gpubid-guard: cannot start: {why}"))
        self._exit()

    # --- the work ---------------------------------------------------------------------------------------------------
    @property
    def count(self) -> float:
        """Return how far the work is."""
        return self._base + (self._ground.now() - self._since if self._since is not None else 0.0)

    def _told_count(self) -> float | None:
        return round(self.count, 3) if self._since is not None else None

    def _finish(self) -> None:
        end = WorkEnd(self.script.code, was_stopped=False)
        self._base, self._since = self.script.needs, None
        self.disk.end = end
        is_done = end.is_done(self.settings.done_codes)
        if is_done:
            self.disk.saved = self.script.needs
            self._status.phase = guard_status.ENDING
            self._carry(None, self.script.needs, self._ground.now())
            self._sleep()
            return
        self._status.phase = guard_status.FAILED
        self._tell_end(f"ended-{self.settings.lease}.json")
        self._tell()
        self._soon(FAILED_SECONDS, self._exit)

    def _sleep(self) -> None:
        """Stay until a signal: an exit would make a market start the work again."""
        is_told = self.disk.end is None or self._tell_end(END)
        self._status.phase = guard_status.DONE
        self._tell()
        if not is_told:
            self._soon(RETRY_SECONDS, self._sleep)

    def _tell_end(self, name: str) -> bool:
        end = self.disk.end
        if end is None:
            return True
        note = end.note(self.settings.lease, self.settings.done_codes, self.disk.manifest or None, ["its last line"])
        try:
            self._notes.write(name, note, is_new=name == END)
        except StoreFailed:
            return False
        if name == END:
            self._ground.note_done(self.root)
        return True

    def _exit(self) -> None:
        self._ground.exit()
        # An end of its own is no notice.
        self._died = None

    # --- checkpoints ------------------------------------------------------------------------------------------------
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

    def _phase(self, wanted: str) -> str:
        return self._status.phase if self._status.phase == guard_status.ENDING else wanted

    def _carried(self, order: str | None, count: float, asked: float) -> None:
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

    # --- beats and orders -------------------------------------------------------------------------------------------
    def _beat(self) -> None:
        self._tell()
        self._soon(BEAT_SECONDS, self._beat)

    def _tell(self) -> None:
        now, key = self._ground.now(), self._notes.key(bucket_notes.beat_name(self.settings.lease))
        body = self.lies.beat(self._status.beat(now), now)
        try:
            if body is not None:
                self._notes.store.put(key, body)
            elif self.lies.says("mute"):
                self._notes.store.delete(key)
        except StoreFailed:
            return
        named = self._status.manifest
        if body is not None and named in self.disk.counts:
            self.disk.told = named

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

    def _check(self) -> None:
        found = self.lies.check(self._ground.gpu, 1, self._ground.memory_mb)
        note = {"version": 1, "lease": self.settings.lease, **found}
        try:
            self._notes.write(f"acceptance-{self.settings.lease}.json", note)
        except StoreFailed:
            self._soon(RETRY_SECONDS, self._check)

    # --- the dead man's switch --------------------------------------------------------------------------------------
    def _watch(self, asked: DeadmanSettings | None) -> None:
        if asked is None or self._switch is None:
            return
        self._soon(ALIVE_SECONDS, lambda: self._watch(asked))
        try:
            found = self._notes.read(ALIVE)
        except StoreFailed:
            return
        sign = deadman_switch.read_sign(*found) if found is not None else None
        self._switch.answered(self._ground.now(), sign)
        self.disk.deadman = self._switch.facts()
        if not self._switch.is_due:
            self._call_off()
        elif not self._is_making:
            self._fire(asked)

    def _fire(self, asked: DeadmanSettings) -> None:
        """Carry a last checkpoint, write the note, and ask the market; without the note nothing is asked."""
        if self._switch is None:
            return
        if self._since is not None:
            self.disk.saved = self.count
            self._carry(None, self.count, self._ground.now())
        destroys = asked.destroys and self._list.pointed() is not None
        note = {
            "version": 1,
            "lease": self.settings.lease,
            "silent_seconds": round(self._switch.silent_seconds, 3),
            "written": self._switch.written,
            "manifest": self.disk.manifest or None,
            "destroys": destroys,
        }
        try:
            self._notes.write(f"deadman-{self.settings.lease}.json", note)
        except StoreFailed:
            return
        self._called = True
        self.disk.deadman = {**self._switch.facts(), "silent_seconds": 0.0}
        self._ground.end(destroys=destroys)

    def _call_off(self) -> None:
        if self._called:
            self._called = False
            note = {"version": 1, "lease": self.settings.lease, "called_off": True}
            try:
                self._notes.write(f"deadman-{self.settings.lease}.json", note)
            except StoreFailed:
                self._called = True

    def _soon(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something later, unless the container has ended by then."""
        starts = self.starts

        def due() -> None:
            if self._is_alive and self.starts == starts:
                act()

        if seconds < math.inf:
            self._ground.put(self._ground.now() + seconds, due)
