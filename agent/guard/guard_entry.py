"""The program: `python3 guard.pyz -- COMMAND`. It may not be the reason why paid work does not start."""

from __future__ import annotations

import os
import sys
from typing import NoReturn, Sequence

from agent.guard import disk_state, guard_settings
from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_life import CANNOT_START, GuardLife
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import GuardSettings
from agent.guard.s3.s3_objects import S3Objects
from agent.guard.work_process import NOT_EXECUTABLE, NOT_FOUND


def main() -> NoReturn:
    """Run the command that stands after `--`."""
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
    notes = _notes(settings, clock)
    # Threads that wait for a server must not keep the process.
    code = GuardLife(settings, os.environ, command, place, GuardOutput(), clock, notes).run()
    sys.stdout.flush()
    os._exit(code)


def _notes(settings: GuardSettings, clock: GuardClock) -> BucketNotes | None:
    if settings.bucket is None:
        return None
    return BucketNotes(S3Objects(settings.bucket, clock), settings.bucket.root)


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
