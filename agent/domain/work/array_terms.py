"""The terms of an array: a batch whose slots are numbered tasks, of which only some are live at once."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from agent.domain.slot import Slot

DEFAULT_AT_ONCE = 8
"""A batch with more slots than this is an array."""


class TaskOrder(Enum):
    """The order in which the tasks of an array begin."""

    INDEX = "index"
    """The lowest number first."""
    RANDOM = "random"
    """In an order that looks random, and is the same in every run."""


@dataclass(frozen=True, slots=True)
class ArrayTerms:
    """The number of an array's slots that may be live at once, and the order in which its tasks begin."""

    at_once: int | None = DEFAULT_AT_ONCE
    """The most live slots; None: as many as the budgets allow."""
    order: TaskOrder = TaskOrder.INDEX
    retries: int = 0
    """How often a task whose work failed is tried again before it is held."""
    task_hours: float | None = None
    """The hours of one task by the file's own estimate, which counts until enough tasks are done."""

    def ordered(self, places: Iterable[Slot]) -> tuple[Slot, ...]:
        """Return slots in the order in which their tasks begin."""
        return tuple(sorted(places, key=_by_index if self.order is TaskOrder.INDEX else _shuffled))


def _by_index(place: Slot) -> str | int:
    return place.index


def _shuffled(place: Slot) -> str | int:
    return hashlib.sha256(str(place).encode()).hexdigest()
