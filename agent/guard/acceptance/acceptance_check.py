"""The check of a host, once at each start. It takes at most a minute and never keeps the work from starting.

It only reports; the daemon knows the rented offer, and judges. A figure that cannot be measured is None. A bucket that
does not answer delays the work by `PATIENCE_SECONDS` more.
"""

from __future__ import annotations

import json
import threading
from typing import Any, Mapping

from agent.guard.acceptance.host_figures import HostFigures
from agent.guard.bucket_notes import VERSION, BucketNotes
from agent.guard.guard_clock import GuardClock, uptime
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import GuardSettings
from agent.guard.object_store import StoreFailed

RETRY_SECONDS, TRIES = 30.0, 20
PATIENCE_SECONDS = 10.0
"""Real seconds that the work waits for the note to be written. A store that answers has it before the work begins."""
_LOOK_SECONDS = 0.1


class AcceptanceCheck:
    """One check."""

    def __init__(
        self,
        settings: GuardSettings,
        host: HostFigures,
        output: GuardOutput,
        clock: GuardClock,
        notes: BucketNotes | None,
        stopping: threading.Event,
    ) -> None:
        """Report the figures of `host`, until the guard must stop."""
        self._settings = settings
        self._host = host
        self._output = output
        self._clock = clock
        self._notes = notes
        self._stopping = stopping

    def run(self) -> None:
        """Check, and report it in the log and in the bucket; a check that was cut off reports nothing."""
        if self._settings.acceptance is None:
            return
        try:
            asked = self._settings.acceptance
            figures = self._host.found(uptime() + asked.seconds, asked.script)
        except (OSError, RuntimeError) as failure:
            self._output.say(f"gpubid-guard: the host is not checked: {failure}")
            return
        if self._stopping.is_set():
            return
        note = {"version": VERSION, "lease": self._settings.lease, **figures}
        self._output.say(f"gpubid-guard acceptance {json.dumps(note, separators=(',', ':'))}")
        if self._notes is not None:
            is_tried, until = threading.Event(), uptime() + PATIENCE_SECONDS
            words = (self._notes, note, is_tried)
            threading.Thread(target=self._write, args=words, daemon=True, name="check").start()
            while not (is_tried.wait(_LOOK_SECONDS) or self._stopping.is_set() or uptime() >= until):
                pass

    def _write(self, notes: BucketNotes, note: Mapping[str, Any], is_tried: threading.Event) -> None:
        """Write the note, and try again while it is of use: the daemon judges a host only in its first minutes."""
        for _ in range(TRIES):
            has_noted = self._has_noted(notes, note)
            is_tried.set()
            if has_noted or self._clock.wait(self._stopping, RETRY_SECONDS):
                return

    def _has_noted(self, notes: BucketNotes, note: Mapping[str, Any]) -> bool:
        try:
            return notes.write(f"acceptance-{self._settings.lease}.json", note)
        except StoreFailed as failure:
            self._output.say(f"gpubid-guard: the check of the host is not in the bucket: {failure}")
            return False
