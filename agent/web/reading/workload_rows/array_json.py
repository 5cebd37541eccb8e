"""How far each array is, and what it still needs, as JSON and as a sentence."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from agent.decide.accounting import task_costs
from agent.decide.accounting.task_costs import ArrayFigures, Middle
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection

LEAST_DOLLARS, LEAST_HOURS = 0.01, 0.1
"""Smaller figures would be shown as 0 in a sentence."""


def rows(workloads: Iterable[Workload], known: Recollection, now: datetime) -> list[dict[str, Any]]:
    """Return a row for each array."""
    works = tuple(workloads)
    arrays, accounts = (work for work in works if work.array is not None), task_costs.renamed(known.tasks, works)
    return [_row(work, task_costs.figures(work, known.leases, known.holds, accounts, now)) for work in arrays]


def _row(work: Workload, found: ArrayFigures) -> dict[str, Any]:
    return {
        "workload": work.name,
        "slots": found.slots,
        "done": found.done,
        "live": found.live,
        "held": found.held,
        "dollars_to_go": _median(found.dollars_to_go),
        "dollars_to_go_low": None if found.dollars_to_go is None else found.dollars_to_go.low,
        "dollars_to_go_high": None if found.dollars_to_go is None else found.dollars_to_go.high,
        "hours_to_go": _median(found.hours_to_go),
        "hours_to_go_low": None if found.hours_to_go is None else found.hours_to_go.low,
        "hours_to_go_high": None if found.hours_to_go is None else found.hours_to_go.high,
        "sentence": sentence(found),
    }


def _median(one: Middle | None) -> float | None:
    return None if one is None else one.median


def sentence(found: ArrayFigures) -> str:
    """Return how far an array is, and what it still needs, in one sentence."""
    state = f"{found.done}/{found.slots} done, {found.live} live, {found.held} held"
    if found.done + found.held == found.slots:
        return state
    money, hours = found.dollars_to_go, found.hours_to_go
    if money is None or hours is None:
        return f"{state}; to go: not known before {task_costs.LEAST} are done"
    dollars = f"about ${money.median:.2f} (${money.low:.2f} to ${money.high:.2f})"
    dollars = dollars if money.high >= LEAST_DOLLARS else f"under ${LEAST_DOLLARS:.2f}"
    span = f"{hours.median:.1f} h ({hours.low:.1f} to {hours.high:.1f})"
    return f"{state}, {dollars} and {span if hours.high >= LEAST_HOURS else f'under {LEAST_HOURS} h'} to go"
