"""Asks for checkpoints, sees when they are whole, and carries them into the bucket, on a thread of its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Callable, Mapping

from agent.guard import guard_status
from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints import checkpoint_aside, checkpoint_files, upload_plan
from agent.guard.checkpoints.advised_interval import AdvisedInterval
from agent.guard.checkpoints.checkpoint_aside import AsideCheckpoint
from agent.guard.checkpoints.checkpoint_files import TooManyFiles
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.checkpoints.checkpoint_upload import CheckpointUpload
from agent.guard.checkpoints.checkpoint_watch import CheckpointWatch
from agent.guard.checkpoints.manifest import Manifest
from agent.guard.checkpoints.upload_plan import UploadPlan
from agent.guard.disk_state import DiskState
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import ASK_SIGUSR1, GuardSettings
from agent.guard.guard_status import GuardStatus
from agent.guard.object_store import DiskFailed, Refused, StoreFailed

LOOK_SECONDS, LOOK_SECONDS_AT_THE_END = 1.0, 0.2
PATIENCE_SECONDS = 600.0
"""How long an asked program has to begin a checkpoint; after that, one that it made earlier is taken."""
ASK_AGAIN_SECONDS, RETRY_SECONDS = 10.0, 30.0
"""A program may install its handler late."""
QUIET_SECONDS = 1_800.0
"""The longest time for which an order suspends the interval: the daemon that wrote it may be gone."""
_LONGEST_ID = 200


class CheckpointCarrier:
    """One carrier a guard; it outlives starts of the work."""

    def __init__(
        self,
        settings: GuardSettings,
        notes: BucketNotes,
        clock: GuardClock,
        output: GuardOutput,
        status: GuardStatus,
        disk: DiskState,
        home: Path | None,
    ) -> None:
        """Carry nothing yet."""
        self._settings = settings
        self._clock = clock
        self._output = output
        self._status = status
        self._disk = disk
        self._watch = CheckpointWatch(settings.paths, settings.complete, home, settings.lease)
        self._upload = CheckpointUpload(notes, clock, settings.lease, settings.run)
        self.list = CheckpointList(notes, settings.lease)
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._ask: Callable[[], bool] = lambda: False
        self._begun = self._due = clock.now()
        self.interval = AdvisedInterval(settings)
        self._asked_wall: float | None = None
        self._asked = 0.0
        self._asked_mark = ""
        self._last_asked: float | None = None
        self._order: str | None = None
        self._asked_for: str | None = None
        self._quiet_until: float | None = None
        self._quiet_by: tuple[object, ...] | None = None
        self._is_ending = self._is_idle = False
        self._has_leftover = False
        self._last: AsideCheckpoint | None = None
        self._is_deaf = settings.ask != ASK_SIGUSR1
        self._is_started = self._is_finished = False
        self._said: set[str] = set()
        self._plan = self._found_plan(home)
        self.after_upload: Callable[[], None] = lambda: None
        self.take_priority: Callable[[], None] = lambda: None

    def start(self, ask: Callable[[], bool], *, is_restored: bool) -> None:
        """Carry the checkpoints of a start of the work; `ask` asks it for one and returns whether anybody listens."""
        with self._lock:
            self._ask = ask
            self._begun = self._clock.now()
            # A checkpoint that a program makes by itself is carried as soon as it is there.
            self._due = self._begun + (0.0 if self._settings.ask != ASK_SIGUSR1 else self.interval.at(0.0))
            try:
                self._has_leftover = self._knows_of_leftover(is_restored=is_restored)
            except (TooManyFiles, OSError) as failure:
                self._say(f"no checkpoint is carried: {failure}")
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, daemon=True, name="carrier").start()

    def _knows_of_leftover(self, *, is_restored: bool) -> bool:
        """Return whether an earlier start left a checkpoint on this disk that the bucket does not have."""
        mark = self._disk.facts.get("mark")
        if is_restored or mark is not None:
            self._watch.forget_new(None if is_restored else str(mark))
        return mark is not None and not self._watch.has_carried

    def take_order(self, order: Mapping[str, Any]) -> None:
        """Take the daemon's order: a checkpoint by an id, and whether no other may be made meanwhile.

        Two containers of one slot read one order: an order for another lease counts as none.
        """
        is_ours = order.get("lease") in (None, self._settings.lease)
        wanted = order.get("checkpoint")
        self._keep_quiet(order if is_ours and order.get("quiet") is True else None)
        if is_ours and isinstance(wanted, str) and 0 < len(wanted) <= _LONGEST_ID and wanted != self._order:
            self._order = wanted
            self._asked_wall = None
            self._woken.set()

    def _keep_quiet(self, order: Mapping[str, Any] | None) -> None:
        """Make none by the interval for `QUIET_SECONDS` from the first look at an order, and at each new one."""
        by = None if order is None else (order.get("written_sequence"), order.get("checkpoint"))
        if by != self._quiet_by:
            self._quiet_until = None if by is None else self._clock.now() + QUIET_SECONDS
            self._quiet_by = by

    def end_soon(self) -> None:
        """Ask for a last checkpoint: the instance is about to be stopped."""
        self._is_ending = self._watch.is_ending = True
        self._is_idle = False
        # The work can make its last checkpoint while an earlier upload goes on.
        self._ask_work(self._clock.now())
        self._woken.set()

    def carry_last(self) -> None:
        """Ask for a checkpoint and carry it now, whatever else is ordered: the instance may be released after it."""
        self._last_asked = self._clock.now()
        self._asked_wall = None
        self._woken.set()

    @property
    def is_carrying(self) -> bool:
        """Return whether there is work whose checkpoints are carried."""
        return self._is_started and not self._is_finished

    @property
    def has_carried_last(self) -> bool:
        """Return whether the checkpoint of `carry_last` is in the bucket, or there is none to wait for."""
        if self._is_finished:
            return not self._lock.locked()
        return not self._is_started or self._last_asked is None

    @property
    def has_all(self) -> bool:
        """Return whether the bucket has every file below the paths. Call it while no work runs."""
        try:
            seen = checkpoint_files.look(self._settings.paths, self._settings.complete)
        except TooManyFiles:
            return False
        return seen is None or seen.mark == self._disk.facts.get("mark")

    @property
    def has_ended(self) -> bool:
        """Return whether the last checkpoint, as far as there is one, is in the bucket."""
        return self._is_idle

    def finish(self, *, is_clean: bool) -> bool:
        """Carry the last checkpoint of the ended work, on this thread; return False if a later call may still do it.

        The first call takes its files aside. After an unclean end a torn one is left out.
        """
        with self._lock:
            self._ask = lambda: False
            try:
                if not self._is_finished:
                    self._last = self._left(is_clean=is_clean)
                    self._is_finished = True
                if self._last is not None:
                    self._drop_plan()
                    self._plan, self._last = self._planned(self._last), None
                if self._plan is not None:
                    self._carry(self._plan)
            except Exception as failure:  # noqa: BLE001 - the end of the work must be reported all the same
                self._is_finished = True
                self._say(f"the last checkpoint is not carried: {_sentence_of(failure)}")
                return not isinstance(failure, StoreFailed) or isinstance(failure, DiskFailed)
            return True

    def _left(self, *, is_clean: bool) -> AsideCheckpoint | None:
        """Return the last checkpoint, taken aside, unless the bucket has it; an earlier guard may have carried it."""
        if not self._is_started and self.has_all:
            return None
        is_over = is_clean or self._watch.is_settled(self._clock)
        return self._watch.whole(self._clock.now(), is_over=is_over)

    def _found_plan(self, home: Path | None) -> UploadPlan | None:
        """Return the upload that the previous guard had begun when it was killed; remove its other folders."""
        is_ours = self._disk.facts.get("lease") == self._settings.lease
        plan = upload_plan.read(self._disk.facts.get("uploading")) if is_ours else None
        kept = plan.aside.folders if plan is not None else ()
        checkpoint_aside.clear(home, self._settings.paths, self._settings.lease, kept, self._clock.wall())
        return plan

    def _run(self) -> None:
        self.take_priority()
        pause = LOOK_SECONDS
        while True:
            self._clock.wait(self._woken, LOOK_SECONDS_AT_THE_END if self._is_ending else pause)
            self._woken.clear()
            pause = LOOK_SECONDS
            try:
                with self._lock:
                    self._step()
            except Exception as failure:  # noqa: BLE001 - without this thread nothing is carried any more
                self._say(f"no checkpoint is carried: {_sentence_of(failure)}")
                pause = RETRY_SECONDS

    def _step(self) -> None:
        now = self._clock.now()
        if self._is_finished:
            return
        if self._plan is not None:
            self._carry(self._plan)
        if self._is_idle or not self._is_wanted(now):
            return
        is_forgotten = self._is_deaf and now - self._asked >= ASK_AGAIN_SECONDS
        if (self._asked_wall is None or is_forgotten) and not self._has_leftover:
            self._ask_work(now)
        aside = self._watch.whole(now)
        if aside is not None and self._is_new(aside, now):
            self._carry(self._planned(aside))
        elif aside is not None:
            aside.drop()
        elif not self._watch.is_pending and self._is_deaf:
            self._is_idle, self._last_asked = self._is_ending, None
        self._forget_unanswered(now)

    def _forget_unanswered(self, now: float) -> None:
        """Let the work be asked again if it has made nothing for long: it may have ignored the signal."""
        if now - self._asked >= PATIENCE_SECONDS and not self._watch.is_pending:
            self._asked_wall = None

    def _is_wanted(self, now: float) -> bool:
        if self._has_leftover or self._last_asked is not None:
            return True
        is_ordered = self._order is not None and self._order != self._disk.facts.get("answered")
        is_quiet = self._quiet_until is not None and now < self._quiet_until
        return is_ordered or self._is_ending or (now >= self._due and not is_quiet)

    def _ask_work(self, now: float) -> None:
        # A later checkpoint is known by its changes: the times of files may be a second, or a tick, too old.
        self._asked_mark = self._watch.mark
        self._asked, self._asked_wall, self._asked_for = now, self._clock.wall(), self._order
        if self._settings.ask == ASK_SIGUSR1:
            self._is_deaf = not self._ask()
            if self._is_deaf and not self._is_ending:
                self._say("no process of the work handles SIGUSR1: only checkpoints that it makes itself are carried")

    def _is_new(self, aside: AsideCheckpoint, now: float) -> bool:
        """Return whether a checkpoint is the one that was asked for, or it is time to take another."""
        patience = self._settings.final_within / 2 if self._is_ending else PATIENCE_SECONDS
        is_answer = self._asked_wall is not None and aside.seen.mark != self._asked_mark
        return self._has_leftover or self._is_deaf or is_answer or now - self._asked >= patience

    def _carry(self, plan: UploadPlan) -> None:
        """Bring a checkpoint to the bucket. Where the store fails it is tried again; a changed one is dropped."""
        self._plan = plan
        self._keep(plan)
        phase = self._status.phase
        self._status.phase = guard_status.UPLOADING
        self._status.set(checkpoint_bytes=plan.aside.seen.size_bytes, checkpoint_took_seconds=plan.took_seconds)
        try:
            manifest, is_newest = self._upload.carry(
                plan, self._rejected(), self._disk.facts.get("manifest"), self._keep
            )
        except DiskFailed:
            self._drop_plan()
            raise
        finally:
            self._status.phase = phase
        self._carried(manifest, plan)
        self._drop_plan()
        if not is_newest:
            self._output.say(f"gpubid-guard: {manifest.id} is carried; another container of this slot is further")
        self._clean(manifest)

    def _planned(self, aside: AsideCheckpoint) -> UploadPlan:
        newest, asked = aside.seen.newest_seconds, self._asked_wall
        took = (newest - asked) * self._clock.speed if asked is not None and not self._is_deaf else 0.0
        now = self._clock.now()
        wall, progress = self._clock.wall(), self._status.progress()
        try:
            sequence = self._next_sequence()
        except StoreFailed:
            # The last checkpoint is planned again later: no other can be made.
            if aside is not self._last:
                aside.drop()
            raise
        return UploadPlan(aside, sequence, progress, wall, now, round(max(took, 0.0), 3), self._asked_for)

    def _keep(self, plan: UploadPlan) -> None:
        self._disk.keep(uploading=plan.note())

    def _drop_plan(self) -> None:
        if self._plan is not None:
            self._plan.aside.drop()
        self._plan = None
        self._disk.keep(uploading=None)

    def _carried(self, manifest: Manifest, plan: UploadPlan) -> None:
        now, seen = self._clock.now(), plan.aside.seen
        self._watch.carried(seen)
        is_last = self._is_deaf or self._asked_wall is None or seen.mark != self._asked_mark
        answered = plan.order or self._disk.facts.get("answered")
        interval = self.interval.at(now - self._begun)
        if self._last_asked is not None and plan.boot_seconds >= self._last_asked and not self._has_leftover:
            self._last_asked = None
        self._due, self._has_leftover = now + interval, False
        if is_last and not self._is_ending:
            self._asked_wall = None
        self._disk.keep(manifest=manifest.name, sequence=manifest.sequence, answered=answered, mark=seen.mark)
        lag = round(max(now - manifest.taken_boot_seconds, 0.0), 3)
        self._status.set(
            manifest=manifest.name, upload_seconds=manifest.uploaded_seconds, upload_lag_seconds=lag, answered=answered
        )
        if manifest.uploaded_seconds > interval:
            self._output.say(
                f"gpubid-guard: a checkpoint of {manifest.size_bytes} bytes took {manifest.uploaded_seconds:.0f} s to "
                f"upload, longer than the {interval:.0f} s between two"
            )
        self._is_idle = self._is_ending and is_last
        self.after_upload()

    def _next_sequence(self) -> int:
        """Return a number above every one in the bucket and on this disk; the disk keeps it first."""
        known = self._disk.facts.get("sequence")
        highest = max(self.list.last_sequence(), known if isinstance(known, int) else 0)
        self._disk.keep(sequence=highest + 1)
        return highest + 1

    def _rejected(self) -> list[str]:
        rejected = self._disk.facts.get("rejected")
        return [name for name in rejected if isinstance(name, str)] if isinstance(rejected, list) else []

    def _clean(self, manifest: Manifest) -> None:
        """Remove old checkpoints. A key that may not delete leaves that to the bucket's own rules."""
        if self._is_ending or "cleaning" in self._disk.facts:
            return
        try:
            self.list.prune(self._settings.keep, manifest)
            self.list.abort_stale()
        except Refused as refusal:
            self._disk.keep(cleaning="refused")
            self._output.say(f"gpubid-guard: old checkpoints stay, the bucket's key may not remove them: {refusal}")
        except StoreFailed:
            return

    def _say(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._output.say(f"gpubid-guard: {sentence}")


def _sentence_of(failure: Exception) -> str:
    """Return the sentence for a person; that of an unexpected error begins with its kind."""
    is_foreseen = isinstance(failure, (StoreFailed, TooManyFiles, OSError))
    return str(failure) if is_foreseen else f"{type(failure).__name__}: {failure}"
