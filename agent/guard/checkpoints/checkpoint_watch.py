"""Sees when a checkpoint is whole: a file marks it as complete, or none of its files has changed for a while."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

from agent.guard.checkpoints import checkpoint_aside, checkpoint_files
from agent.guard.checkpoints.checkpoint_aside import AsideCheckpoint
from agent.guard.checkpoints.checkpoint_files import SeenCheckpoint, TooManyFiles
from agent.guard.guard_clock import GuardClock, uptime
from agent.guard.object_store import DiskFailed

QUIET_SECONDS, QUIET_SECONDS_WITH_MARK, QUIET_SECONDS_AT_THE_END = 10.0, 2.0, 2.0


class CheckpointWatch:
    """Looks at the paths. It owns each checkpoint that it took aside until `whole` returns it."""

    def __init__(self, paths: Sequence[str], complete: str | None, home: Path | None, lease: str = "") -> None:
        """Begin without a checkpoint. Folders of links have the lease in their names."""
        self._paths = paths
        self._complete = complete
        self._home = home
        self._carried: SeenCheckpoint | None = None
        self._seen: SeenCheckpoint | None = None
        self._since = 0.0
        self._held: AsideCheckpoint | None = None
        self._lease, self._begun, self._taken = lease, uptime(), 0
        self.is_ending = False

    def forget_new(self, mark: str | None = None) -> None:
        """Count the present files as carried: they were just restored, or have the mark of a carried checkpoint."""
        seen = self._look()
        if seen is not None and (mark is None or seen.mark == mark):
            self._carried = seen

    def carried(self, seen: SeenCheckpoint) -> None:
        """Remember that this checkpoint is in the bucket."""
        self._carried = seen

    @property
    def mark(self) -> str:
        """Return the mark of the present files; empty if there are none, or they cannot be looked at."""
        try:
            seen = self._look()
        except (TooManyFiles, OSError):
            return ""
        return seen.mark if seen is not None else ""

    @property
    def has_carried(self) -> bool:
        """Return whether there are no files, or the present ones are in the bucket."""
        seen = self._look()
        return seen is None or seen == self._carried

    def is_settled(self, clock: GuardClock) -> bool:
        """Return whether the present files were last written so long ago that they are whole."""
        seen = self._look()
        return seen is not None and (clock.wall() - seen.newest_seconds) * clock.speed >= self._quiet

    @property
    def is_pending(self) -> bool:
        """Return whether the last look saw a checkpoint that is not carried."""
        return self._seen is not None and self._seen != self._carried

    def whole(self, now: float, *, is_over: bool = False) -> AsideCheckpoint | None:
        """Return a new whole checkpoint, taken aside, or None. `is_over`: nothing writes any more."""
        seen = self._look()
        if seen is None or (seen == self._carried and self._held is None):
            self._seen = seen
            return None
        if self._held is not None:
            return self._held_or_again(seen, now, is_over=is_over)
        if seen != self._seen:
            self._seen, self._since = seen, now
            self._hold_single(seen)
        if not is_over and now - self._since < self._quiet:
            return None
        return self._released() or self._take(seen)

    def _released(self) -> AsideCheckpoint | None:
        """Return the held checkpoint, and own it no more."""
        held, self._held = self._held, None
        return held

    @property
    def _quiet(self) -> float:
        if self._complete is not None:
            return QUIET_SECONDS_WITH_MARK
        return QUIET_SECONDS_AT_THE_END if self.is_ending else QUIET_SECONDS

    def _look(self) -> SeenCheckpoint | None:
        return checkpoint_files.look(self._paths, self._complete)

    def _hold_single(self, seen: SeenCheckpoint) -> None:
        """Hold a checkpoint of one file: a program that replaces it by renaming may do so again before it was quiet."""
        if len(seen.files) == 1:
            try:
                self._held = checkpoint_aside.taken(seen, self._home, self._name(), may_copy=False)
            except DiskFailed:
                self._held = None

    def _held_or_again(self, seen: SeenCheckpoint, now: float, *, is_over: bool) -> AsideCheckpoint | None:
        held = self._held
        if held is not None and held.is_unchanged and len(seen.files) == 1:
            if not is_over and now - self._since < self._quiet:
                return None
            self._held = None
            return held
        if held is not None:
            held.drop()
        self._held = self._seen = None
        return None

    def _take(self, seen: SeenCheckpoint) -> AsideCheckpoint | None:
        aside = checkpoint_aside.taken(seen, self._home, self._name())
        if aside.is_unchanged and self._look() == seen:
            return aside
        aside.drop()
        self._seen = None
        return None

    def _name(self) -> str:
        self._taken += 1
        return checkpoint_aside.name_of(self._lease, self._begun, self._taken)
