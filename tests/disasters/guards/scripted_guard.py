"""A guard without a process: it follows the world's clock, and uses the formats of the program in a container.

Notes, manifests, the pointer and the dead man's count are those of the program itself. The work is a counter: one more
for each second of running. The last saved checkpoint is on its disk; a carried one is in the bucket as well.
"""

import contextlib
from collections.abc import Mapping

from agent.guard import bucket_notes, guard_settings, guard_status
from agent.guard.bucket_notes import END, BucketNotes
from agent.guard.checkpoints.manifest import Manifest
from agent.guard.deadman import deadman_switch
from agent.guard.deadman.deadman_switch import DeadmanSwitch
from agent.guard.guard_settings import DeadmanSettings, GuardSettings
from agent.guard.object_store import StoreFailed
from agent.guard.tasks import next_task, task_watch
from agent.guard.tasks.next_task import NextTask
from agent.guard.work_end import WorkEnd
from tests.disasters.guards import host_lies
from tests.disasters.guards.carrying_script import LOOK_SECONDS, MOST_BYTES, RETRY_SECONDS, CarryingScript
from tests.disasters.guards.container_script import Ground
from tests.disasters.story import Guarded

ALIVE = "alive.json"
ALIVE_SECONDS, RESTORE_SECONDS, BEGIN_SECONDS, CHECK_SECONDS, READY_SECONDS = 30.0, 5.0, 1.0, 4.0, 15.0
PATIENCE_SECONDS, FAILED_SECONDS = 600.0, 300.0


class ScriptedGuard(CarryingScript):
    """The guard of one instance, over all of its starts."""

    def __init__(
        self, rented: Mapping[str, str], settings: GuardSettings, script: Guarded, notes: BucketNotes, ground: Ground
    ) -> None:
        super().__init__(settings, script, notes, ground)
        self._rented = rented
        self._switch: DeadmanSwitch | None = None
        self._called = False
        self._looks_until: float | None = None
        self._is_end_told = False

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

    def start(self) -> None:
        """Begin as a container begins."""
        self.kill()
        self.starts += 1
        self._is_alive, self._is_making = True, False
        self._looks_until, self._is_end_told = None, False
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
        self.disk.manifest, self.disk.sequence = newest.name, max(newest.sequence, self.disk.sequence)
        # A beat names the restored checkpoint as the last one, and the daemon compares that one.
        self.disk.saved = self.disk.counts[newest.name] = newest.progress or 0.0
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
        self.has_refused = True
        self._status.phase = guard_status.FAILED
        self._tell()
        self._lines.append((self._ground.now(), f"gpubid-guard: cannot start: {why}"))
        self._exit()

    # --- the end ----------------------------------------------------------------------------------------------------
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
        self._is_end_told = is_told = self.disk.end is None or self._tell_end(END)
        self._status.phase = guard_status.DONE
        self._tell()
        if not is_told:
            self._soon(RETRY_SECONDS, self._sleep)
        if self._looks_until is None and self.settings.next_variables is not None:
            self._looks_until = self._ground.now() + task_watch.WAITS_SECONDS
            self._look_for_task()

    # --- the next task ----------------------------------------------------------------------------------------------
    def _look_for_task(self) -> None:
        """Go on with the task that a note gives to this host, once the end of its own is in the bucket."""
        if self._looks_until is None or self._ground.now() >= self._looks_until:
            return
        self._soon(task_watch.EVERY_SECONDS, self._look_for_task)
        if not self._is_end_told or self.lies.says("deaf"):
            return
        try:
            found = self._notes.read(next_task.note_name(self.settings.lease))
        except StoreFailed:
            return
        task = None if found is None else next_task.parsed(found[0], self.settings.next_variables or ())
        if task is not None:
            self._go_on(task)

    def _go_on(self, task: NextTask) -> None:
        """Begin anew on a clean disk, in the same container."""
        self._use(guard_settings.read(next_task.environment(self._rented, task)))
        self._is_alive, self._died = False, None
        self.start()

    def wipe(self) -> None:
        """Lose the disk, and with it which task this is."""
        self._use(guard_settings.read(self._rented))

    def _use(self, settings: GuardSettings) -> None:
        root = settings.bucket.root if settings.bucket is not None else self.root
        self.begin(settings, BucketNotes(self._notes.store, root))

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

    def _check(self) -> None:
        found = self.lies.check(self._ground.gpu, 1, self._ground.memory_mb)
        note = {"version": 1, "lease": self.settings.lease, **found}
        try:
            self._notes.write(f"acceptance-{self.settings.lease}.json", note)
        except StoreFailed:
            self._soon(RETRY_SECONDS, self._check)
            return
        self._ground.note_check(is_true=not any(map(self.lies.says, host_lies.OF_CHECKS)))

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
