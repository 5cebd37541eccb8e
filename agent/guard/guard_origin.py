"""The beginning of a start of the work: nothing, the files on the disk, or a checkpoint in the bucket.

If the work crashes twice from one beginning, each time within a minute, the next older beginning is used once: after
the disk the newest checkpoint, after a checkpoint the one before. A further crash counts as the program's own.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import threading
from pathlib import Path
from typing import Callable

from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints import checkpoint_restore
from agent.guard.checkpoints.checkpoint_files import OWN_FOLDER, PARTIAL
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.checkpoints.checkpoint_restore import WrongContent
from agent.guard.checkpoints.manifest import Manifest
from agent.guard.disk_state import DiskState
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import GuardSettings
from agent.guard.guard_status import GuardStatus
from agent.guard.object_store import DiskFailed, Refused, StoreFailed

PATIENCE_SECONDS, RETRY_SECONDS = 600.0, 10.0
CRASH_SECONDS, TRIES = 60.0, 2
CUT_OFF_IN_A_ROW = 2
NOT_FOUND = 404
REPLACED = ".gpubid-replaced"


class CannotBegin(Exception):
    """There is a checkpoint that cannot be read. A start without it would repeat paid work."""


class GuardOrigin:
    """The beginning of this guard's next start of the work."""

    def __init__(
        self,
        settings: GuardSettings,
        notes: BucketNotes,
        clock: GuardClock,
        output: GuardOutput,
        status: GuardStatus,
        disk: DiskState,
    ) -> None:
        """Decide nothing yet."""
        self._settings = settings
        self._notes = notes
        self._clock = clock
        self._output = output
        self._status = status
        self._disk = disk
        self._list = CheckpointList(notes, settings.lease)
        self._manifest: Manifest | None = None
        self._is_on_disk = False
        self._is_in_place = False
        self._crashes = 0
        self._may_step_back = True

    @property
    def is_restored(self) -> bool:
        """Return whether the disk has exactly the files of a checkpoint."""
        return self._manifest is not None

    def find(self, stopping: threading.Event) -> None:
        """Decide where the first start begins, and restore it; wait for the bucket if the work cannot begin without."""
        self._is_on_disk = self._disk.facts.get("started") is True
        is_needed = self._settings.manifest_exists and not self._is_on_disk
        self._patiently(self._look, stopping, is_needed=is_needed)
        if self._manifest is not None:
            if any(has_files(Path(path)) for path in self._settings.paths):
                self._output.say(f"gpubid-guard: files are where the checkpoint goes; they are moved to NAME{REPLACED}")
                self._set_aside()
            self._patiently(self._bring, stopping, is_needed=True)

    def crashed(self, stopping: threading.Event) -> bool:
        """Count a start that crashed within a minute; prepare the disk, and return whether to start again."""
        if self._manifest is None and not self._is_on_disk:
            return False
        self._crashes += 1
        if self._crashes >= TRIES and not self._stepped_back(stopping):
            return False
        if self._manifest is not None:
            self._clear()
            self._is_in_place = False
            self._patiently(self._bring, stopping, is_needed=True)
        return not stopping.is_set()

    def _look(self) -> None:
        newest = self._list.newest()
        if (count := self._list.cut_off()) >= CUT_OFF_IN_A_ROW:
            self._output.say(
                f"gpubid-guard: the last {count} uploads were cut off: a checkpoint never finishes before the instance "
                "is lost. Make it smaller, or take hosts with a faster network"
            )
        if self._is_on_disk and newest is not None and self._is_further(newest):
            self._output.say(f"gpubid-guard: {newest.id} of another host is further than this disk")
            self._set_aside()
            self._is_on_disk = False
        if not self._is_on_disk:
            self._manifest = newest

    def _is_further(self, newest: Manifest) -> bool:
        known = self._disk.facts.get("sequence")
        is_known = newest.name == self._disk.facts.get("manifest")
        return newest.lease != self._settings.lease and not is_known and newest.sequence > (known or 0)

    def _bring(self) -> None:
        """Restore the manifest, or the newest before it that can be restored."""
        begun = self._clock.now()
        while self._manifest is not None and not self._is_in_place:
            self._bring_one(self._manifest)
        if self._manifest is None:
            raise CannotBegin("no checkpoint in the bucket can be restored")
        seconds = round(self._clock.now() - begun, 3)
        self._status.set(restored=self._manifest.name, manifest=self._manifest.name, restore_seconds=seconds)
        self._status.set_progress(self._manifest.progress)
        self._disk.keep(manifest=self._manifest.name, sequence=self._manifest.sequence)
        self._output.say(f"gpubid-guard: {self._manifest.id} is restored, {self._manifest.size_bytes} bytes")

    def _bring_one(self, manifest: Manifest) -> None:
        try:
            checkpoint_restore.restore(self._notes, manifest, self._settings.paths)
        except (WrongContent, Refused) as failure:
            if isinstance(failure, Refused) and failure.status != NOT_FOUND:
                raise
            self._reject(str(failure))
        else:
            self._is_in_place = True

    def _reject(self, why: str) -> None:
        """Go to the checkpoint before."""
        if self._manifest is not None:
            self._output.say(f"gpubid-guard: {self._manifest.id} is given up: {why}")
            rejected = self._disk.facts.get("rejected")
            self._disk.keep(rejected=[*(rejected if isinstance(rejected, list) else []), self._manifest.name][-100:])
            self._manifest = self._list.before(self._manifest)

    def _stepped_back(self, stopping: threading.Event) -> bool:
        if not self._may_step_back:
            return False
        self._crashes = 0
        if self._is_on_disk:
            self._output.say("gpubid-guard: the files on this disk are given up: the work crashed on them twice")
            self._is_on_disk = False
            self._patiently(self._look, stopping, is_needed=True)
        else:
            self._may_step_back = False
            self._reject("the work crashed on it twice")
        return self._manifest is not None

    def _clear(self) -> None:
        """Clear the paths: files that a checkpoint just brought are removed, all others are moved aside."""
        # If this guard is killed now, the next one must not take the remaining files for the work's own.
        self._disk.keep(started=False)
        if not self._is_in_place:
            self._set_aside()
            return
        for path in map(Path, self._settings.paths):
            remove(path)

    def _set_aside(self) -> None:
        """Move the files below the paths aside, and keep those that were moved before."""
        for path in map(Path, self._settings.paths):
            with contextlib.suppress(OSError):
                _move_away(path)

    def _patiently(self, ask: Callable[[], None], stopping: threading.Event, *, is_needed: bool) -> None:
        """Ask the bucket until it answers, for ten minutes; only once if the work can begin without it."""
        until = self._clock.now() + PATIENCE_SECONDS
        while not stopping.is_set():
            failure = _failure(ask)
            if failure is None:
                return
            if isinstance(failure, DiskFailed) or (is_needed and self._clock.now() >= until):
                raise CannotBegin(str(failure))
            if not is_needed:
                self._output.say(f"gpubid-guard: begun without the bucket: {failure}")
                return
            self._clock.wait(stopping, RETRY_SECONDS)


def _failure(ask: Callable[[], None]) -> StoreFailed | None:
    try:
        ask()
    except StoreFailed as failure:
        return failure
    return None


def _move_away(path: Path) -> None:
    try:
        path.rename(_free(path.with_name(path.name + REPLACED)))
    except FileNotFoundError:
        return
    except OSError:
        # The path may be a mount.
        inner = _free(path / OWN_FOLDER / REPLACED)
        inner.mkdir(parents=True)
        for child in path.iterdir():
            if child.name != OWN_FOLDER:
                child.rename(inner / child.name)


def _free(place: Path) -> Path:
    """Return an unused name: files that were moved away before may be the only copy."""
    names = (place.with_name(f"{place.name}-{number}") for number in itertools.count(2))
    return next(each for each in itertools.chain([place], names) if not os.path.lexists(each))


def has_files(path: Path) -> bool:
    """Return whether it has files besides those of a restore that was cut off."""
    if path.is_symlink() or path.is_file():
        return True
    for _, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name != OWN_FOLDER]
        if any(not name.endswith(PARTIAL) for name in names):
            return True
    return False


def remove(path: Path) -> None:
    """Remove the files at a path, but for the guard's own folder."""
    children = [path] if path.is_symlink() or not path.is_dir() else list(path.iterdir())
    for child in children:
        if child.is_dir() and not child.is_symlink():
            if child.name != OWN_FOLDER:
                shutil.rmtree(child, ignore_errors=True)
            continue
        with contextlib.suppress(OSError):
            child.unlink()
