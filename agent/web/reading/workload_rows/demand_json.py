"""How many slots each demand wants now, as JSON and as a sentence."""

from typing import Any

from agent.decide.demand import wanted_slots
from agent.domain.fleet import Fleet
from agent.domain.work.workload import Workload


def rows(fleet: Fleet | None) -> list[dict[str, Any]]:
    """Return a row for each workload with a demand, by the last pass; none before the first one."""
    asked = [] if fleet is None else [(fleet, work) for work in fleet.workloads if work.demand is not None]
    return [_row(seen, work) for seen, work in asked]


def _row(fleet: Fleet, work: Workload) -> dict[str, Any]:
    wanted = wanted_slots.wanted(fleet, work)
    report = fleet.demand_reports.get(work.name)
    is_answered = report is not None and report.read_at is not None
    return {
        "workload": work.name,
        "least": work.demand.least if work.demand is not None else 0,
        "most": work.slots,
        "wanted": wanted.slots if wanted is not None else work.slots,
        "tasks": report.tasks if report is not None and is_answered else None,
        "sentence": wanted.sentence if wanted is not None else "",
    }
