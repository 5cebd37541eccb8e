"""What the guard of a lease says of itself, as the daemon last read it; a host may lie in every word of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from agent.domain.work.acceptance_report import AcceptanceReport

Fraction = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Name = Annotated[str, msgspec.Meta(max_length=256)]


class GuardNotice(msgspec.Struct, frozen=True):
    """What the guard before got of the end of its stretch: whether a signal came, and the seconds until silence."""

    sigterm_seen: bool
    seconds: Seconds


class GuardBeat(msgspec.Struct, frozen=True):
    """The guard's sign of life: what it does now, and what it measured. Times are durations on the host."""

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
    """From the making of that checkpoint until the bucket had it."""
    restore_seconds: Seconds | None = None
    notice: GuardNotice | None = None
    """While the work runs: of the last stop of its instance; None where no guard ran before on its disk."""
    answered: Name | None = None
    """The last order of the daemon that it has carried out."""


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
        """How it ended, in words."""
        return f"killed by signal {self.signal}" if self.signal is not None else f"exit code {self.code}"


class GuardSwitch(msgspec.Struct, frozen=True):
    """The note of a dead man's switch that fires: what it counted, before it asks the market to end the instance."""

    version: Literal[1]
    lease: Name
    silent_seconds: Seconds
    written: Annotated[int, msgspec.Meta(ge=0, le=2**33)] | None = None
    """The last number that it read in a sign of life: seconds since 1970 by the daemon's clock; None: it read none."""
    manifest: Name | None = None
    destroys: bool = False


@dataclass(frozen=True, slots=True)
class GuardReport:
    """Everything that was read of one lease's guard; `read_at` is when the bucket last told all of it."""

    read_at: datetime
    beat: GuardBeat | None = None
    """Its own; that of another lease of the slot is none."""
    beat_changed_at: datetime | None = None
    """When a beat was first seen after another or none, by the daemon's clock; None while nobody has seen a change."""
    end: GuardEnd | None = None
    """The final end of the run's work, or that of this lease where there is no final one."""
    unread_end: str = ""
    """The name of an end that is there and cannot be read; it is not known what it says."""
    beat_seen_at: datetime | None = None
    """Since when each reading found this beat, or none, by the daemon's clock; a restart begins anew."""
    switch: GuardSwitch | None = None
    """The note of this lease's dead man's switch, where it ever fired."""
    acceptance: AcceptanceReport | None = None
    """What its check of the host found at the last start, where it was told to check."""
