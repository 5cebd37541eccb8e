"""When the GPUs of a running lease count as idle, and what is done about it."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class OnIdle(StrEnum):
    """What is done about idle GPUs."""

    WARN = "warn"
    """An alert."""
    PAUSE = "pause"
    """The slot is held for a person: its lease is paused, and keeps its disk."""
    RELEASE = "release"
    """The slot is held for a person, and its lease is released."""


@dataclass(frozen=True, slots=True)
class IdleRule:
    """GPUs are idle after `lasts` in which every listing showed their use below `below` per cent.

    Both defaults are assumed: a display or a stray process uses a few per cent, and loading data between two epochs
    takes minutes.
    """

    below: float = 5.0
    lasts: timedelta = timedelta(minutes=15)
    then: OnIdle = OnIdle.WARN
