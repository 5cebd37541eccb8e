"""How many slots each demand wants now, as JSON and as a sentence."""

from datetime import datetime
from typing import Any

from agent.decide.demand import wanted_slots
from agent.decide.demand.wanted_slots import Wanted
from agent.domain.fleet import Fleet
from agent.domain.slot_demand import DemandReport
from agent.domain.work.workload import Workload


def rows(fleet: Fleet | None) -> list[dict[str, Any]]:
    """Return a row for each workload with a demand, by the last pass; none before the first one."""
    asked = [] if fleet is None else [(fleet, work) for work in fleet.workloads if work.demand is not None]
    return [_row(seen, work) for seen, work in asked]


def _row(fleet: Fleet, work: Workload) -> dict[str, Any]:
    wanted = wanted_slots.wanted(fleet, work)
    report = fleet.demand_reports.get(work.name, DemandReport())
    hand = fleet.hand_demands.get(work.name)
    by_hand = hand is not None and fleet.now < hand.until
    return {
        "workload": work.name,
        "least": work.demand.least if work.demand is not None else 0,
        "most": work.slots,
        "wanted": wanted.slots if wanted is not None else work.slots,
        "live": len(wanted.live) if wanted is not None else 0,
        "tasks": report.tasks if report.read_at is not None else None,
        "answered_at": _instant(report.read_at),
        "silent_since": _instant(report.trouble_since),
        "by_hand_until": _instant(hand.until if hand is not None and by_hand else None),
        "sentence": _sentence(wanted, report),
    }


def _sentence(wanted: Wanted | None, report: DemandReport) -> str:
    """Return the number with its reason, and when it was answered last."""
    if wanted is None:
        return ""
    answered = f"; answered at {report.read_at:%H:%M} UTC" if report.read_at is not None else ""
    return f"{wanted.sentence}{answered}; {len(wanted.live)} live"


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
