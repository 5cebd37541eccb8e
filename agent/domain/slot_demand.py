"""Demand: how many slots of a workload whoever has the queue wants now. gpubid has no queue and schedules no tasks."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class DemandFrom(StrEnum):
    """Where a demand is read."""

    HTTP = "http"
    """A page that answers a number, or JSON with `tasks`."""
    COMMAND = "command"
    """A program that prints a number."""
    PROMETHEUS = "prometheus"
    """A query of Prometheus that gives one sample."""


@dataclass(frozen=True, slots=True)
class Demand:
    """The terms of a demand. `least` slots are wanted also without any task, and before the first answer."""

    least: int
    source: DemandFrom
    place: str = ""
    """The address of the page or of Prometheus."""
    query: str = ""
    command: tuple[str, ...] = ()
    per_slot: int = 1
    """How many tasks, waiting or running, one slot is for."""
    every: timedelta = timedelta(seconds=30)
    shrink_after: timedelta = timedelta(minutes=10)
    """Fewer slots are wanted once every answer of this long wanted fewer."""


@dataclass(frozen=True, slots=True)
class DemandReport:
    """What was read of a demand. A question without an answer changes nothing but `trouble`."""

    tasks: int = 0
    """The number in the last answer."""
    most_tasks: int = 0
    """The largest number in the answers of `shrink_after` before the last one."""
    read_at: datetime | None = None
    """When the last answer was read; None: there was none."""
    since: datetime | None = None
    """Since when answers came without a gap."""
    trouble: str = ""
    """Why the last question has no answer; empty: it has one."""
    trouble_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class HandDemand:
    """A person's demand, in place of what is read, until it is over."""

    workload: str
    slots: int
    until: datetime
