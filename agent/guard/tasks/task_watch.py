"""Looks for the next task while the guard is asleep after a finished one, for a bounded time."""

from __future__ import annotations

import threading
from typing import Collection

from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.object_store import StoreFailed
from agent.guard.tasks import next_task
from agent.guard.tasks.next_task import NextTask
from agent.guard.tasks.task_file import TaskFile

EVERY_SECONDS = 10.0
WAITS_SECONDS = 900.0
"""How long a task is looked for. The daemon decides within minutes, and releases the instance if it has none."""


class TaskWatch:
    """A thread that reads one note until it is there."""

    def __init__(
        self, lease: str, allowed: Collection[str], notes: BucketNotes, clock: GuardClock, tasks: TaskFile
    ) -> None:
        """Look for the task after that of `lease`, and write it down in `tasks`."""
        self._lease = lease
        self._allowed = allowed
        self._notes = notes
        self._clock = clock
        self._tasks = tasks
        self.is_taken = False
        """Whether there is one, and the disk has it."""

    def start(self, stopping: threading.Event) -> None:
        """Begin to look."""
        threading.Thread(target=self._run, args=(stopping,), daemon=True, name="next task").start()

    def _run(self, stopping: threading.Event) -> None:
        until = self._clock.now() + WAITS_SECONDS
        while not self.is_taken and not stopping.is_set() and self._clock.now() < until:
            task = self._look()
            self.is_taken = task is not None and self._tasks.take(task)
            self._clock.wait(stopping, EVERY_SECONDS)

    def _look(self) -> NextTask | None:
        try:
            found = self._notes.read(next_task.note_name(self._lease))
        except StoreFailed:
            return None
        return None if found is None else next_task.parsed(found[0], self._allowed)
