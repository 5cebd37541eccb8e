"""The program: `python3 guard.pyz -- COMMAND`. It must never be the reason why paid work does not start."""

from __future__ import annotations

import os
import sys
from typing import NoReturn, Sequence

from agent.guard import disk_state, guard_settings, rclone_store
from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_life import CANNOT_START, GuardLife
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import GuardSettings
from agent.guard.rclone_store import RcloneStore
from agent.guard.reaper import Reaper
from agent.guard.s3.s3_objects import S3Objects
from agent.guard.work_process import NOT_EXECUTABLE, NOT_FOUND, WorkCommand


def main() -> NoReturn:
    """Run the command after `--`."""
    words = sys.argv[1:]
    command = words[words.index("--") + 1 :] if "--" in words else words
    if not command:
        sys.stderr.write("usage: python3 guard.pyz -- COMMAND\n")
        sys.exit(2)
    if "GPUBID_GUARD" not in os.environ:
        _run_bare(command, "GPUBID_GUARD is not set")
    try:
        settings = guard_settings.read(os.environ)
    except guard_settings.UnusableSettings as mistake:
        sys.stdout.write(f"gpubid-guard: cannot start: {mistake}\n")
        sys.exit(CANNOT_START)
    place = disk_state.folder(os.environ)
    clock = GuardClock(guard_settings.speed(os.environ))
    reaper = Reaper()
    notes = _notes(settings, clock, reaper)
    # Threads that wait for a server must not keep the process.
    work = WorkCommand(command, guard_settings.work_environment(os.environ, str(place / "progress") if place else None))
    code = GuardLife(settings, work, place, GuardOutput(), clock, notes, reaper).run()
    sys.stdout.flush()
    os._exit(code)


def _notes(settings: GuardSettings, clock: GuardClock, reaper: Reaper) -> BucketNotes | None:
    """Return the mailbox: in S3, else by rclone where it is on PATH; None where there is neither."""
    if settings.bucket is not None:
        return BucketNotes(S3Objects(settings.bucket, clock), settings.bucket.root)
    if settings.rclone is None:
        return None
    if not rclone_store.is_here():
        if settings.manifest_exists:
            sys.stdout.write("gpubid-guard: cannot start: rclone is not on PATH, and there is a checkpoint\n")
            sys.exit(CANNOT_START)
        sys.stdout.write("gpubid-guard: rclone is not on PATH: no checkpoint is carried\n")
        sys.stdout.flush()
        return None
    remote, _, path = settings.rclone.rpartition(":")
    return BucketNotes(RcloneStore(f"{remote}:", clock, reaper), path.rstrip("/"))


def _run_bare(command: Sequence[str], why: str) -> NoReturn:
    sys.stdout.write(f"gpubid-guard: bare: {why}\n")
    sys.stdout.flush()
    try:
        os.execvp(command[0], list(command))  # noqa: S606 - the tenant's command is what is asked for
    except FileNotFoundError as error:
        _fail(error, NOT_FOUND)
    except (OSError, ValueError) as error:
        _fail(error, NOT_EXECUTABLE)


def _fail(error: Exception, code: int) -> NoReturn:
    sys.stdout.write(f"gpubid-guard: cannot start: {error}\n")
    sys.exit(code)
