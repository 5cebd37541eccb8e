"""The end of the work on its way into the bucket: the last checkpoint first, then the note.

1. The note waits for the checkpoint: once the daemon has read the note, it may release the disk, which may have the
   only copy of a result.
2. The note waits no more for a checkpoint that can never be carried, or that the bucket has refused for too long.
"""

from __future__ import annotations

from typing import Any, Mapping

from agent.guard.bucket_notes import END, BucketNotes
from agent.guard.checkpoints.checkpoint_carrier import CheckpointCarrier
from agent.guard.disk_state import DiskState
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.object_store import StoreFailed

OF_NOBODY = "none"
"""The lease in a note that is taken back: no intent has this id."""


def name_of(note: Mapping[str, Any]) -> str:
    """Return the name of the note of an end that is not final."""
    return f"ended-{note.get('lease')}.json"


class EndReport:
    """One end of the work."""

    def __init__(
        self,
        note: Mapping[str, Any] | None,
        notes: BucketNotes | None,
        carrier: CheckpointCarrier | None,
        disk: DiskState,
        output: GuardOutput,
        clock: GuardClock,
        patience_seconds: float,
    ) -> None:
        """Report `note`, or nothing if it is None: then the bucket has the end already.

        The note waits for the checkpoint for `patience_seconds` at most.
        """
        self._note: Mapping[str, Any] = note or {}
        self._notes = notes
        self._carrier = carrier
        self._disk = disk
        self._output = output
        self._clock = clock
        self._until = clock.now() + patience_seconds
        self._is_carried = carrier is None
        self.is_sent = note is None or notes is None
        """Whether nothing is left to do."""

    def send(self) -> bool:
        """Try once; return whether nothing is left to do."""
        if not self.is_sent and self._has_carried():
            self.is_sent = self._has_written()
        return self.is_sent

    def _has_carried(self) -> bool:
        """Carry the last checkpoint; return whether the note may follow."""
        if self._carrier is None or self._is_carried:
            return True
        self._is_carried = self._carrier.finish(is_clean=self._is_done)
        if not self._is_carried and self._clock.now() >= self._until:
            self._output.say("gpubid-guard: the last checkpoint is given up; the bucket has an earlier one, or none")
            self._is_carried = True
        return self._is_carried

    @property
    def _is_done(self) -> bool:
        return self._note.get("done") is True

    def _has_written(self) -> bool:
        if self._notes is None:
            return True
        name = END if self._is_done else name_of(self._note)
        try:
            note = {**self._note, "manifest": self._disk.facts.get("manifest")}
            self._notes.write(name, note, is_new=self._is_done)
        except StoreFailed as failure:
            self._output.say(f"gpubid-guard: the end is not in the bucket: {failure}")
            return False
        return True
