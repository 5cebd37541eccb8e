"""The amount of work that a workload has done, in the unit that its operator names, by the numbers of its guards.

Invariants:
1. Only reported numbers count. A slot's number is its last report, so work that was lost and repeated counts once.
2. A run does the work from its beginning, so the last numbers of all runs of a slot add up.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LastNumber:
    """The last number that the guard of a slot reported in one of its runs."""

    workload: str
    slot: int
    run: int
    number: float
    is_renamed: bool = False
    """Whether the run began under another name of the workload, which has a part of its cost."""


@dataclass(frozen=True, slots=True)
class WorkDone:
    """The unit of a workload's work, and how many are done.

    None if no guard has reported a number, or if a part of the work was paid for under another name.
    """

    unit: str
    number: float | None = None

    def price(self, dollars: float) -> float | None:
        """Return the dollars per unit; None if the amount is unknown or nothing is done."""
        return dollars / self.number if self.number else None


def of_workload(workload: str, unit: str, numbers: Iterable[LastNumber]) -> WorkDone:
    """Return the work of all slots and runs of a workload."""
    mine = [each for each in numbers if each.workload == workload]
    is_known = mine and not any(each.is_renamed for each in mine)
    return WorkDone(unit, math.fsum(each.number for each in mine) if is_known else None)
