"""The life of the guard: start the work, watch it, say how it ended, and stay asleep after a finished one.

1. The work is never started again after an end with a done code: the note in the bucket and the one on the disk say so.
2. A stop that was announced is written down before anything else is done.
3. A command that ended because it was told to is never called done, whatever its exit code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping, Sequence

from agent.guard import guard_settings, guard_status
from agent.guard.disk_state import DiskState
from agent.guard.guard_beat import GuardBeat
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import GuardSettings
from agent.guard.guard_status import GuardStatus
from agent.guard.reaper import Reaper
from agent.guard.signal_line import STOPS, SignalLine
from agent.guard.work_end import WorkEnd
from agent.guard.work_process import NOT_EXECUTABLE, NOT_FOUND, WorkProcess

LOOK_SECONDS, LOOK_SECONDS_OF_A_STOP = 1.0, 0.1
"""Real seconds between two looks where no signal comes."""


class GuardLife:
    """One guard over one command."""

    def __init__(
        self,
        settings: GuardSettings,
        environment: Mapping[str, str],
        command: Sequence[str],
        place: Path | None,
        output: GuardOutput,
    ) -> None:
        """Take signals from now on."""
        self._settings = settings
        self._command = command
        self._output = output
        self._signals = SignalLine()
        self._reaper = Reaper()
        self._clock = GuardClock(guard_settings.speed(environment))
        progress = place / "progress" if place is not None else None
        self._environment = guard_settings.work_environment(environment, str(progress) if progress else None)
        self._disk = DiskState(place, settings.run)
        self._status = GuardStatus(settings.lease, progress, place or Path("/"))
        self._beat = GuardBeat(self._clock, output, self._status, None, self._take_order)

    def run(self) -> int:
        """Live to the end; return the exit code."""
        if self._disk.facts.get("done") is True:
            return self._sleep("the work is done, it does not start again")
        self._status.set(notice=self._disk.taken_notice())
        self._disk.keep(lease=self._settings.lease, ended=False)
        self._status.phase = guard_status.RUNNING
        self._beat.start()
        end = self._worked()
        return self._ended(end)

    def _worked(self) -> WorkEnd:
        """Start the command and watch it to its end."""
        try:
            work = WorkProcess(self._command, self._environment, self._reaper)
        except FileNotFoundError as error:
            return self._never_began(error, NOT_FOUND)
        except (OSError, ValueError) as error:
            return self._never_began(error, NOT_EXECUTABLE)
        work.print_to(self._output)
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
            self._signals.wait(self._clock.real(LOOK_SECONDS_OF_A_STOP) if stopping else LOOK_SECONDS)
            self._reaper.reap()
            self._pass_on_signals(work)
            code = work.code
            # A command that leaves the work to others of its group, as `train &` in a script does, has not ended it.
            if code is not None and (code != 0 or not work.has_others):
                return WorkEnd(code, self._signals.stopping.is_set())
            if code is not None and not is_announced:
                is_announced = True
                self._output.say("gpubid-guard: the command ended with code 0, others of its group still run")

    def _pass_on_signals(self, work: WorkProcess) -> None:
        for number in self._signals.taken():
            if number in STOPS:
                self._disk.note_stop(self._clock.now())
            work.signal(number)
        if self._signals.stopping.is_set():
            self._disk.note_alive(self._clock.now())

    def _ended(self, end: WorkEnd) -> int:
        """Say how it ended; return the exit code, after a finished work only when told to end."""
        is_done = end.is_done(self._settings.done_codes)
        self._disk.keep(ended=True, done=is_done)
        self._status.phase = guard_status.DONE if is_done else guard_status.FAILED
        self._output.say(f"gpubid-guard: {end.sentence()}")
        if is_done:
            return self._sleep("asleep until the instance is released")
        self._beat.beat()
        return end.exit_code

    def _sleep(self, why: str) -> int:
        """Stay until a signal asks for the end: an exit would make a market start the work again."""
        self._status.phase = guard_status.DONE
        self._output.say(f"gpubid-guard: {why}")
        self._beat.start()
        self._beat.soon()
        while not self._signals.stopping.is_set():
            self._signals.wait(LOOK_SECONDS)
            self._reaper.reap()
        return 0

    def _take_order(self, order: Mapping[str, Any]) -> None:
        pass
