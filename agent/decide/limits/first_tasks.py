"""How many tasks of an array may be live within its budget before the cost of a task is known.

Until then a task of a workload that names no GPU counts with `task_hours` at its highest price (`task_reserve.py`).
That is far more than it costs where most cards are cheaper, and it can stop nearly every start.
"""

from agent.decide.accounting import task_costs
from agent.domain.record import budget
from agent.domain.record.budget import Thresholds
from agent.domain.work.array_terms import DEFAULT_AT_ONCE
from agent.domain.work.workload import Workload


def stopped_starts(work: Workload, hard: Thresholds) -> str | None:
    """Return the sentence that the array's own budget, `hard`, stops starts, or None if it does not."""
    hours = work.array.task_hours if work.array is not None else None
    caps = {window: cap for window in budget.SUMS if (cap := hard.amount(window)) is not None}
    if work.array is None or hours is None or work.requirements.gpu_models or not caps:
        return None
    window, cap = min(caps.items(), key=lambda each: each[1])
    each = work.prices.highest.over(hours * 3600)
    wanted = min(work.slots, work.array.at_once or DEFAULT_AT_ONCE)
    fit = cap.micros // each.micros if each.micros else wanted
    if fit >= wanted:
        return None
    few = f"at most {fit} of {wanted} slots are live" if fit else "no slot begins"
    return (
        f"until {task_costs.LEAST} tasks are done, {few}: without gpu each task sets {each} of the budget's {cap} "
        f"({_KEYS[window]}) aside, which is task_hours at max_price"
    )


_KEYS = {window: f"max_{window.value}" for window in budget.SUMS}
