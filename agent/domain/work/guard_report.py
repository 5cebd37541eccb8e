"""The reports of a lease's guard, as the daemon last read them. A host may lie in every part of them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from agent.domain.work.acceptance_report import AcceptanceReport

Fraction = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
Name = Annotated[str, msgspec.Meta(max_length=256)]


class GuardNotice(msgspec.Struct, frozen=True):
    """The notice before the end of the previous stretch: whether a signal came, and the seconds until silence."""

    sigterm_seen: bool
    seconds: Seconds


class GuardBeat(msgspec.Struct, frozen=True):
    """The guard's sign of life: its present phase and its measurements. Times are durations on the host."""

    version: Literal[1]
    sequence: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    lease: Name
    """The id of the intent that rented its lease."""
    phase: Literal["restoring", "running", "uploading", "ending", "done", "failed"]
    progress: Fraction | None = None
    manifest: Name | None = None
    """The last checkpoint that is whole in the bucket."""
    checkpoint_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None
    checkpoint_took_seconds: Seconds | None = None
    upload_seconds: Seconds | None = None
    upload_lag_seconds: Seconds | None = None
    """The time from the making of that checkpoint until the bucket had it."""
    restore_seconds: Seconds | None = None
    notice: GuardNotice | None = None
    """While the work runs: the notice of the last stop of its instance; None if no guard ran on its disk before."""
    answered: Name | None = None
    """The last order of the daemon that it has carried out."""
    gpu_use: Percent | None = None
    """The use of its busiest GPU while the work runs, by the driver of its host; None: unknown."""

    def is_same_work(self, other: "GuardBeat") -> bool:
        """Return whether the work has made no progress from one beat to the other: the beats alone prove none."""
        return (self.progress, self.manifest) == (other.progress, other.manifest)


class GuardEnd(msgspec.Struct, frozen=True):
    """The end of the work: its exit code or the signal that killed it, and its last lines."""

    version: Literal[1]
    lease: Name
    code: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None
    signal: Annotated[int, msgspec.Meta(ge=1, le=64)] | None = None
    done: bool = False
    last_lines: Annotated[list[Annotated[str, msgspec.Meta(max_length=500)]], msgspec.Meta(max_length=50)] = []

    @property
    def sentence(self) -> str:
        """The end in words."""
        return f"killed by signal {self.signal}" if self.signal is not None else f"exit code {self.code}"


class GuardSwitch(msgspec.Struct, frozen=True):
    """The note that a dead man's switch writes when it fires, before it orders the market to end the instance."""

    version: Literal[1]
    lease: Name
    silent_seconds: Seconds
    written: Annotated[int, msgspec.Meta(ge=0, le=2**33)] | None = None
    """The last number that it read in a sign of life: seconds since 1970 by the daemon's clock; None: none was read."""
    manifest: Name | None = None
    destroys: bool = False


@dataclass(frozen=True, slots=True)
class GuardReport:
    """Everything that was read of one lease's guard; `read_at` is when all of it was last read from the bucket."""

    read_at: datetime
    beat: GuardBeat | None = None
    """Its own beat; a beat of another lease of the slot does not count."""
    beat_changed_at: datetime | None = None
    """When the daemon last saw the beat change, by the daemon's clock; None while it has seen no change."""
    end: GuardEnd | None = None
    """The final end of the run's work; if there is none, the end on this lease."""
    unread_end: str = ""
    """The name of an end that exists and cannot be read, so that its content is unknown."""
    beat_seen_at: datetime | None = None
    """Since when each reading found this same beat, or none, by the daemon's clock; a restart begins again."""
    switch: GuardSwitch | None = None
    """The note of this lease's dead man's switch, if it ever fired."""
    work_changed_at: datetime | None = None
    """When the daemon last saw the work's progress or its checkpoint change; None while it has seen no change."""
    acceptance: AcceptanceReport | None = None
    """The result of its check of the host at the last start, if it was ordered to check."""
    unfinished_at: datetime | None = None
    """When a reading last found that the run is not done, by the daemon's clock; None while none has found that."""
