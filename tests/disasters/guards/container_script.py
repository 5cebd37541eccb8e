"""A container under a guard, as a story plays it: its disk, its log, its beats, and the world around it."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from agent.guard import bucket_notes, guard_status
from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.guard_settings import GuardSettings
from agent.guard.guard_status import GuardStatus
from agent.guard.object_store import StoreFailed
from agent.guard.work_end import WorkEnd
from tests.disasters.guards.host_lies import HostLies
from tests.disasters.story import Guarded

BEAT_SECONDS = 60.0


class Ground(Protocol):
    """The questions of a script to the world around its container."""

    @property
    def gpu(self) -> str:
        """Return the model, as its driver writes it."""

    @property
    def memory_mb(self) -> int:
        """Return the memory of a GPU."""

    def now(self) -> float:
        """Return the world's time."""

    def put(self, at: float, act: Callable[[], None]) -> None:
        """Let something happen at a time."""

    def exit(self) -> None:
        """Let the container end."""

    def end(self, *, destroys: bool) -> None:
        """Ask the market to stop the instance, or to end it, by the instance's own key."""

    def note_check(self, *, is_true: bool) -> None:
        """See that the bucket has a check of the host."""

    def note_done(self, root: str) -> None:
        """See that work is done, and that the bucket has its end."""


@dataclasses.dataclass(slots=True)
class Disk:
    """The content of an instance's disk."""

    is_begun: bool = False
    """Whether the work ever began on it."""
    saved: float | None = None
    """The count of the last checkpoint on it; None: there is none."""
    manifest: str = ""
    """The last checkpoint that the guard carried from it, or restored."""
    counts: dict[str, float] = dataclasses.field(default_factory=dict)
    """The count of each checkpoint that it carried, by the name of its manifest."""
    told: str = ""
    """The last checkpoint of its own that a beat named in the bucket."""
    sequence: int = 0
    answered: str | None = None
    deadman: Mapping[str, Any] | None = None
    end: WorkEnd | None = None


class Status(GuardStatus):
    """The status, with the count of the work."""

    def __init__(self, lease: str, count: Callable[[], float | None]) -> None:
        super().__init__(lease, None, Path("/"))
        self._count = count

    def progress(self) -> float | None:
        return self._count()

    @property
    def manifest(self) -> str:
        """Return the checkpoint that the next beat names."""
        return self._fields["manifest"] or ""


class ContainerScript:
    """What every part of a script shares; to the simulator, the processes of an instance."""

    def __init__(self, settings: GuardSettings, script: Guarded, notes: BucketNotes, ground: Ground) -> None:
        self.script = script
        self.lies = HostLies()
        self.starts = 0
        self.has_refused = False
        self._ground = ground
        self.begin(settings, notes)
        self._lines: list[tuple[float, str]] = []
        self._is_alive = False
        self.idle_from = -math.inf
        """Since when its work does nothing, if it is not busy."""
        self._working_since: float | None = None
        self._base = 0.0
        self._begun = 0.0
        self._terminated_at: float | None = None
        self._died: tuple[bool, float] | None = None

    def begin(self, settings: GuardSettings, notes: BucketNotes) -> None:
        """Be about a task, with nothing of another one on the disk."""
        self.settings = settings
        self.disk = Disk()
        self._notes = notes
        self._list = CheckpointList(notes, settings.lease)
        self._status = Status(settings.lease, self._told_count)

    @property
    def root(self) -> str:
        """Return its folder in the bucket."""
        return self._notes.root

    @property
    def ports(self) -> Mapping[int, int]:
        return {}

    @property
    def has_ended(self) -> bool:
        return False

    @property
    def _since(self) -> float | None:
        """Since when its work runs; None while it does not."""
        return self._working_since

    @_since.setter
    def _since(self, since: float | None) -> None:
        if since is None and self._working_since is not None:
            self.idle_from = self._ground.now()
        self._working_since = since

    @property
    def is_busy(self) -> bool:
        return self._since is not None

    def printed(self) -> tuple[int, Sequence[tuple[float, str]]]:
        return 0, [line for line in self._lines if line[0] <= self._ground.now()]

    def wipe(self) -> None:
        """Lose the disk."""
        self.disk = Disk()

    def remove(self) -> None:
        """There is nothing on this machine."""

    def kill(self) -> None:
        if self._is_alive:
            now = self._ground.now()
            told_at = self._terminated_at
            self._died = (told_at is not None, now - told_at if told_at is not None else 0.0)
        self._is_alive = False
        self._since = self._terminated_at = None

    def _exit(self) -> None:
        self._ground.exit()
        # An end of its own is no notice.
        self._died = None

    @property
    def count(self) -> float:
        """Return how far the work is."""
        return self._base + (self._ground.now() - self._since if self._since is not None else 0.0)

    def _told_count(self) -> float | None:
        return round(self.count, 3) if self._since is not None else None

    def _beat(self) -> None:
        self._tell()
        self._soon(BEAT_SECONDS, self._beat)

    def _tell(self) -> None:
        now, key = self._ground.now(), self._notes.key(bucket_notes.beat_name(self.settings.lease))
        body = self.lies.beat(self._status.beat(now), now)
        try:
            if body is not None:
                self._notes.store.put(key, body)
            elif self.lies.says("mute"):
                self._notes.store.delete(key)
        except StoreFailed:
            return
        named = self._status.manifest
        if body is not None and named in self.disk.counts:
            self.disk.told = named

    def _phase(self, wanted: str) -> str:
        return self._status.phase if self._status.phase == guard_status.ENDING else wanted

    def _soon(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something later, unless the container has ended by then."""
        starts = self.starts

        def due() -> None:
            if self._is_alive and self.starts == starts:
                act()

        if seconds < math.inf:
            self._ground.put(self._ground.now() + seconds, due)
