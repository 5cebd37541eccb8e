"""The program: `python3 guard.pyz -- COMMAND`. It must never be the reason why paid work does not start."""

from __future__ import annotations

import os
import sys
from typing import Mapping, NoReturn, Sequence

from agent.guard import disk_state, guard_settings, rclone_store
from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_life import CANNOT_START, GuardLife
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import GuardSettings
from agent.guard.rclone_store import RcloneStore
from agent.guard.reaper import Reaper
from agent.guard.s3.s3_objects import S3Objects
from agent.guard.tasks import next_task
from agent.guard.tasks.task_file import TaskFile
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
        rented = guard_settings.read(os.environ)
        place = disk_state.folder(os.environ)
        tasks = TaskFile(place, rented.rented) if place is not None else None
        environment = _of_the_present_task(rented, tasks)
        settings = guard_settings.read(environment)
    except guard_settings.UnusableSettings as mistake:
        sys.stdout.write(f"gpubid-guard: cannot start: {mistake}\n")
        sys.exit(CANNOT_START)
    clock = GuardClock(guard_settings.speed(os.environ))
    reaper = Reaper()
    notes = _notes(settings, clock, reaper)
    work = WorkCommand(
        command, guard_settings.work_environment(environment, str(place / "progress") if place else None)
    )
    life = GuardLife(settings, work, place, GuardOutput(), clock, notes, reaper)
    code = life.run()
    sys.stdout.flush()
    if life.has_next_task:
        _begin_again()
    # Threads that wait for a server must not keep the process.
    os._exit(code)


def _of_the_present_task(rented: GuardSettings, tasks: TaskFile | None) -> Mapping[str, str]:
    """Return the environment of the task that this container works on; the disk is cleaned for it once."""
    if tasks is None or rented.next_variables is None or rented.bucket is None:
        return os.environ
    task = tasks.task(rented.next_variables)
    if task is None:
        return os.environ
    if not tasks.cleaned(task, rented.paths):
        # The rent's own task is done, so its guard only sleeps; the daemon sees that the other task does not beat.
        sys.stdout.write("gpubid-guard: the next task does not begin: files of the one before cannot be removed\n")
        tasks.forget()
        return next_task.without(os.environ)
    sys.stdout.write(f"gpubid-guard: this host goes on with {task.root}\n")
    return next_task.environment(os.environ, task)


def _begin_again() -> NoReturn:
    """Start this program anew in the same process: it is the first one of its container, and must not end."""
    words = list(getattr(sys, "orig_argv", ["", *sys.argv]))
    os.execv(sys.executable, [sys.executable, *words[1:]])  # noqa: S606 - this very program, by its own words


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
