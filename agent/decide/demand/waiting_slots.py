"""The empty slots that may not begin yet, whatever keeps them: an array, work that comes before, or a demand."""

from collections.abc import Mapping

from agent.decide.arrays import array_window
from agent.decide.demand import demand_window
from agent.domain.fleet import Fleet
from agent.domain.record.hold import Holds
from agent.domain.slot import Slot
from agent.domain.work.decision import Reason
from agent.domain.work.workload import Workload


def of(fleet: Fleet, work: Workload, holds: Holds) -> Mapping[Slot, Reason]:
    """Return the empty slots of a workload that may not begin yet, each with the reason."""
    return {**demand_window.waiting(fleet, work, holds), **array_window.waiting(fleet, work, holds)}
