"""The beat: once a minute a line in the log and a note in the bucket, and a look at the daemon's orders."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Mapping

from agent.guard import bucket_notes
from agent.guard.bucket_notes import ORDER, BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_status import GuardStatus
from agent.guard.object_store import StoreFailed

BEAT_SECONDS, LOOK_SECONDS = 60.0, 10.0


class GuardBeat:
    """A thread that reports the guard's status and reads the daemon's orders."""

    def __init__(
        self,
        clock: GuardClock,
        output: GuardOutput,
        status: GuardStatus,
        notes: BucketNotes | None,
        take_order: Callable[[Mapping[str, Any]], None],
        take_advice: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> None:
        """Beat to the output, and to the bucket where there is one."""
        self._take_advice = take_advice
        self._clock = clock
        self._output = output
        self._status = status
        self._notes = notes
        self._take_order = take_order
        self._woken = threading.Event()
        self._due = 0.0
        self._is_away = self._is_started = False
        self._beating = threading.Lock()
        self._saying = threading.Lock()
        self._is_silent = False

    def start(self) -> None:
        """Begin with a beat at once; a second call does nothing."""
        if self._is_started:
            return
        self._is_started = True
        threading.Thread(target=self._run, daemon=True, name="beat").start()

    def soon(self) -> None:
        """Beat now: the daemon waits for something that has changed."""
        self._due = 0.0
        self._woken.set()

    def beat(self) -> None:
        """Beat once, on this thread."""
        with self._beating:
            said = self._status.beat(self._clock.now())
            self._say(f"gpubid-guard {json.dumps(said, separators=(',', ':'))}")
            if self._notes is not None:
                self._heard(lambda: self._write(said))

    def end(self) -> None:
        """Beat once more, and print nothing after it: the guard's next line is then the last one."""
        self.beat()
        with self._saying:
            self._is_silent = True

    def _say(self, line: str) -> None:
        with self._saying:
            if not self._is_silent:
                self._output.say(line)

    def _run(self) -> None:
        while True:
            if self._clock.now() >= self._due:
                self._due = self._clock.now() + BEAT_SECONDS
                self.beat()
            self._heard(self._look)
            self._clock.wait(self._woken, LOOK_SECONDS)
            self._woken.clear()

    def _write(self, said: Mapping[str, Any]) -> None:
        if self._notes is not None:
            self._notes.write(bucket_notes.beat_name(said["lease"]), said)
            advice = self._notes.read(bucket_notes.advice_name(said["lease"]))
            if advice is not None:
                self._take_advice(advice[0])

    def _look(self) -> None:
        found = self._notes.read(ORDER) if self._notes is not None else None
        if found is not None:
            self._take_order(found[0])

    def _heard(self, ask: Callable[[], None]) -> None:
        """Ask the bucket; where it is away, say so once until it is back."""
        try:
            ask()
        except StoreFailed as failure:
            if not self._is_away:
                self._say(f"gpubid-guard: the bucket is away: {failure}")
            self._is_away = True
        except Exception as failure:  # noqa: BLE001 - without beats the daemon takes the guard for dead
            self._say(f"gpubid-guard: the bucket's answer is odd: {type(failure).__name__}")
        else:
            self._is_away = False
