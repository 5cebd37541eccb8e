"""The life of the guard: bring a checkpoint, start the work, watch it, say how it ended, sleep after a finished one.

1. The work is never started again after an end with a done code: the note in the bucket and the one on the disk say so.
2. A stop that was announced is written down before anything else is done.
3. A command that ended on an order is never called done, whatever its exit code.
4. A start takes the note of an earlier end back: that end says nothing about how this start will end.
"""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import Any, Mapping

from agent.guard import end_report, guard_settings, guard_status, low_priority
from agent.guard.acceptance import gpu_query
from agent.guard.acceptance.acceptance_check import AcceptanceCheck
from agent.guard.acceptance.gpu_query import GpuQuery
from agent.guard.acceptance.gpu_use import GpuUse
from agent.guard.acceptance.host_figures import HostFigures
from agent.guard.bucket_notes import END, BucketNotes
from agent.guard.checkpoints.checkpoint_carrier import CheckpointCarrier
from agent.guard.deadman.deadman_watch import DeadmanWatch
from agent.guard.disk_state import DiskState
from agent.guard.end_report import EndReport
from agent.guard.guard_beat import GuardBeat
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_origin import CRASH_SECONDS, CannotBegin, GuardOrigin
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import GuardSettings
from agent.guard.guard_status import GuardStatus
from agent.guard.logs.log_carrier import LogCarrier
from agent.guard.object_store import LARGEST_MANIFEST_BYTES, StoreFailed, TooLarge
from agent.guard.reaper import Reaper
from agent.guard.signal_line import STOPS, SignalLine
from agent.guard.tasks.task_file import TaskFile
from agent.guard.tasks.task_watch import TaskWatch
from agent.guard.work_end import WorkEnd
from agent.guard.work_process import NOT_EXECUTABLE, NOT_FOUND, WorkCommand, WorkProcess

CANNOT_START = 78
STOPPED = 128 + signal.SIGTERM
LOOK_SECONDS, LOOK_SECONDS_OF_A_STOP = 1.0, 0.1
"""Seconds between two looks where no signal comes."""
RETRY_SECONDS = 30.0
LAST_SECONDS = 3_600.0
"""How long the note of a finished job waits for its last checkpoint, since the daemon releases the disk after reading
the note. It matters only for a bucket that takes notes and no checkpoint: one that is away takes neither."""
MOST_ENDS_BY_REQUEST = 3
"""How often the command starts again after the guard's own signal ended it: some programs end at each signal."""
FAILED_SECONDS = 300.0
"""How long the guard stays after a failed end: the daemon reads the bucket once a minute, and some markets start an
ended container again at once."""


class GuardLife:
    """One guard over one command."""

    def __init__(
        self,
        settings: GuardSettings,
        command: WorkCommand,
        place: Path | None,
        output: GuardOutput,
        clock: GuardClock,
        notes: BucketNotes | None,
        reaper: Reaper,
    ) -> None:
        """Take signals from now on."""
        self._settings = settings
        self._command = command
        self._output = output
        self._clock = clock
        self._notes = notes
        self._signals = SignalLine()
        self._reaper = reaper
        progress = Path(file) if (file := command.environment.get(guard_settings.PROGRESS_VARIABLE)) else None
        self._disk = DiskState(place, settings.run)
        self._status = GuardStatus(settings.lease, progress, place or Path("/"))
        self._beat = GuardBeat(clock, output, self._status, notes, self._take_order, self._take_advice)
        host = HostFigures(command.environment, place, reaper, self._signals.stopping)
        self._check = AcceptanceCheck(settings, host, output, clock, notes, self._signals.stopping)
        query = GpuQuery(command.environment, reaper, self._signals.stopping, gpu_query.USE)
        self._gpu_use = GpuUse(
            query, clock, self._signals.stopping, self._status.is_working, lambda use: self._status.set(gpu_use=use)
        )
        self._logs: LogCarrier | None = None
        if notes is not None and place is not None and settings.carries_logs:
            self._logs = LogCarrier(settings.lease, place, notes, clock, output)
        self._carrier: CheckpointCarrier | None = None
        self._origin: GuardOrigin | None = None
        self._deadman: DeadmanWatch | None = None
        if notes is not None:
            shared = (settings, notes, clock, output, self._status, self._disk)
            self._carrier = CheckpointCarrier(*shared, place)
            self._origin = GuardOrigin(*shared)
            self._deadman = DeadmanWatch(*shared, self._carrier)
        self._next: TaskWatch | None = None
        if notes is not None and place is not None and settings.next_variables is not None:
            tasks = TaskFile(place, settings.rented)
            self._next = TaskWatch(settings.lease, settings.next_variables, notes, clock, tasks)
        self._stop_until: float | None = None
        self._is_stop_forwarded = False
        self._is_end_unread = False

    @property
    def has_next_task(self) -> bool:
        """Return whether this life ended because another task begins on this host now."""
        return self._next is not None and self._next.is_taken and not self._signals.stopping.is_set()

    def run(self) -> int:
        """Live to the end; return the exit code."""
        if self._deadman is not None:
            self._deadman.start(self._signals.stopping)
        elif self._settings.deadman is not None:
            self._output.say("gpubid-guard: dead man's switch: without a bucket it never fires")
        try:
            if self._disk.facts.get("done") is True or self._has_ended_elsewhere():
                return self._sleep("the work is done, it does not start again")
            self._begin()
            if self._is_end_unread and self._has_ended_elsewhere():
                return self._sleep("the work is done, it does not start again")
            end = self._lived()
        except CannotBegin as why:
            return self._refused(why)
        if end is None:
            # The next guard would take this end for a loss without a notice.
            self._disk.keep(ended=True)
            return STOPPED
        return self._ended(end)

    def _begin(self) -> None:
        """Restore the files from which the work begins; this may wait for the bucket."""
        self._status.set(notice=self._disk.taken_notice())
        self._disk.keep(lease=self._settings.lease, ended=False)
        if self._carrier is not None:
            self._carrier.after_upload = self._beat.soon
            self._carrier.take_priority = lambda: low_priority.take(self._reaper)
        else:
            self._status.phase = guard_status.RUNNING
        self._take_end_back()
        self._beat.start()
        if self._logs is not None:
            self._logs.start()
        self._check.run()
        if self._origin is not None:
            self._origin.find(self._signals.stopping)

    def _take_end_back(self) -> None:
        """Write over the note of an earlier end of this lease; where the bucket is away, the next start tries again."""
        note = self._disk.facts.get("end")
        if self._notes is None or not isinstance(note, dict) or note.get("lease") != self._settings.lease:
            return
        try:
            self._notes.write(end_report.name_of(note), {**note, "lease": end_report.OF_NOBODY}, is_new=False)
        except StoreFailed as failure:
            self._output.say(f"gpubid-guard: the note of its earlier end stays in the bucket: {failure}")
            return
        self._disk.keep(end=None)

    def _refused(self, why: CannotBegin) -> int:
        """Say why nothing starts; return the exit code."""
        self._status.phase = guard_status.FAILED
        self._disk.keep(ended=True)
        self._beat.end()
        # The daemon reads this line only if it is the last one of the log.
        self._output.say(f"gpubid-guard: cannot start: {why}")
        return CANNOT_START

    def _has_ended_elsewhere(self) -> bool:
        """Return whether the bucket says that the work is done; a bucket that is away is asked again later.

        A note that cannot be read may say so too: CannotBegin.
        """
        self._is_end_unread = False
        try:
            found = self._notes.read(END, LARGEST_MANIFEST_BYTES) if self._notes is not None else None
        except TooLarge as failure:
            raise CannotBegin(f"{END} is in the bucket and cannot be read: {failure}") from None
        except StoreFailed as failure:
            self._output.say(f"gpubid-guard: the bucket is away: {failure}")
            self._is_end_unread = True
            return False
        if found is not None and not found[0]:
            raise CannotBegin(f"{END} is in the bucket and is no note of this guard's")
        return found is not None and found[0].get("done") is True

    def _lived(self) -> WorkEnd | None:
        """Run the command; again if its checkpoint or our signal may have ended it. None if a stop came before."""
        requests = 0
        while not self._signals.stopping.is_set():
            begun = self._clock.now()
            # A checkpoint that it wrote before our signal ended it is newer than the one that was restored.
            is_restored = self._origin is not None and self._origin.is_restored and requests == 0
            end = self._worked(is_restored=is_restored)
            if end.is_by_request and requests < MOST_ENDS_BY_REQUEST and end.code not in self._settings.done_codes:
                requests += 1
                self._output.say(f"gpubid-guard: {end.sentence()}, which asked for a checkpoint: it starts again")
                continue
            is_crash = not end.was_stopped and end.code not in self._settings.done_codes
            if not is_crash or self._clock.now() - begun >= CRASH_SECONDS or self._origin is None:
                return end
            self._output.say(f"gpubid-guard: {end.sentence()} within a minute")
            if not self._origin.crashed(self._signals.stopping):
                return end
        return None

    def _worked(self, *, is_restored: bool) -> WorkEnd:
        """Start the command and watch it to its end."""
        try:
            work = WorkProcess(self._command, self._reaper)
        except FileNotFoundError as error:
            return self._never_began(error, NOT_FOUND)
        except (OSError, ValueError) as error:
            return self._never_began(error, NOT_EXECUTABLE)
        work.print_to(self._output)
        if self._carrier is not None:
            self._carrier.start(work.ask, is_restored=is_restored)
        if self._status.phase != guard_status.RUNNING:
            self._status.phase = guard_status.RUNNING
            self._beat.soon()
        self._disk.keep(started=True)
        self._gpu_use.start()
        end = self._watched(work)
        work.end()
        return end

    def _never_began(self, error: Exception, code: int) -> WorkEnd:
        self._output.say(f"gpubid-guard: the command cannot be started: {error}")
        return WorkEnd(code, was_stopped=False)

    def _watched(self, work: WorkProcess) -> WorkEnd:
        is_announced = False
        while True:
            stopping = self._signals.stopping.is_set()
            self._signals.wait(self._clock.real(LOOK_SECONDS_OF_A_STOP if stopping else LOOK_SECONDS))
            self._reaper.reap()
            self._take_signals(work)
            code = work.code
            # A command that leaves the work to others of its group, as `train &` in a script does, has not ended it.
            if code is not None and (code != 0 or not work.has_others):
                return WorkEnd(code, self._signals.stopping.is_set(), work.was_asked)
            if code is not None and not is_announced:
                is_announced = True
                self._output.say("gpubid-guard: the command ended with code 0, others of its group still run")

    def _take_signals(self, work: WorkProcess) -> None:
        for number in self._signals.taken():
            if number in STOPS and self._stop_until is None:
                self._begin_stop()
            elif number not in STOPS:
                work.signal(number)
        if self._stop_until is None:
            return
        self._disk.note_alive(self._clock.now())
        is_time = self._clock.now() >= self._stop_until or self._carrier is None or self._carrier.has_ended
        if is_time and not self._is_stop_forwarded:
            self._is_stop_forwarded = True
            work.signal(signal.SIGTERM)

    def _begin_stop(self) -> None:
        """Write the notice down, and ask for a last checkpoint; only then the work gets the signal."""
        now = self._clock.now()
        self._disk.note_stop(now)
        self._status.phase = guard_status.ENDING
        self._status.set(notice={"sigterm_seen": True, "seconds": 0.0})
        self._stop_until = now + self._settings.final_within
        if self._logs is not None:
            self._logs.soon()
        if self._carrier is not None:
            self._carrier.end_soon()

    def _ended(self, end: WorkEnd) -> int:
        """Print how it ended and return the exit code; after finished work only when a signal asks for the end."""
        is_done = end.is_done(self._settings.done_codes)
        note = end.note(
            self._settings.lease,
            self._settings.done_codes,
            self._disk.facts.get("manifest"),
            self._output.last_lines(),
        )
        # First, since work that is done must not start again if the guard is killed before all is in the bucket.
        self._disk.keep(ended=True, done=is_done, end=note)
        self._status.phase = guard_status.ENDING if is_done else guard_status.FAILED
        self._output.say(f"gpubid-guard: {end.sentence()}")
        if is_done:
            return self._sleep("asleep until the instance is released")
        until = self._clock.now() + FAILED_SECONDS
        patience = 0.0 if end.was_stopped else FAILED_SECONDS / 2
        report = self._report_of(note, patience)
        report.send()
        self._beat.beat()
        self._carry_last_output()
        if self._notes is not None and not end.was_stopped:
            self._stay(report, until)
        return end.exit_code

    def _report_of(self, note: Mapping[str, Any] | None, patience_seconds: float) -> EndReport:
        return EndReport(note, self._notes, self._carrier, self._disk, self._output, self._clock, patience_seconds)

    def _sleep(self, why: str) -> int:
        """Stay until a signal asks for the end: an exit would make a market start the work again."""
        self._output.say(f"gpubid-guard: {why}")
        note = self._disk.facts.get("end")
        report = self._report_of(note if isinstance(note, dict) else None, LAST_SECONDS)
        self._status.phase = guard_status.ENDING
        # The note is there before the beat says that the work is done.
        if report.send():
            self._status.phase = guard_status.DONE
        self._beat.start()
        self._beat.soon()
        self._carry_last_output()
        self._look_for_a_task(report)
        self._stay(report, math.inf)
        if self.has_next_task:
            self._carry_last_output()
        return 0

    def _carry_last_output(self) -> None:
        """Carry the rest of the log, after the notes by which the daemon decides."""
        if self._logs is not None:
            self._logs.finish()

    def _stay(self, report: EndReport, until: float) -> None:
        """Stay until a time or a signal, and send the end until the bucket has it."""
        retry = self._clock.now() + RETRY_SECONDS
        while not self._signals.stopping.is_set() and self._clock.now() < until:
            self._signals.wait(self._clock.real(LOOK_SECONDS))
            self._reaper.reap()
            if report.is_sent and self.has_next_task:
                return
            if report.is_sent or self._clock.now() < retry:
                continue
            if report.send() and self._status.phase == guard_status.ENDING:
                self._status.phase = guard_status.DONE
                self._beat.soon()
                self._look_for_a_task(report)
            retry = self._clock.now() + RETRY_SECONDS

    def _look_for_a_task(self, report: EndReport) -> None:
        """Look for the next task once the bucket has the end, from which on the daemon counts the time."""
        if self._next is not None and report.is_sent:
            self._next.start(self._signals.stopping)

    def _take_advice(self, note: Mapping[str, Any]) -> None:
        if self._carrier is not None:
            self._carrier.interval.take(note)

    def _take_order(self, order: Mapping[str, Any]) -> None:
        if self._carrier is not None:
            self._carrier.take_order(order)
