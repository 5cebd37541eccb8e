"""Reports of spend and savings as JSON: dollars, hours, and ratios of sums in whole micro-dollars."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent.decide.accounting.accounts import PHASES, Sum
from agent.decide.accounting.savings import Saving
from agent.domain.money import MICROS
from agent.domain.record.account import HOUR, LostWork
from agent.domain.record.work_done import WorkDone


def spent(key: str, one: Sum, done: WorkDone | None = None) -> dict[str, Any]:
    """Return one row of a report of spend, with the work done if its unit is named and its amount is asked for."""
    return {
        "key": key,
        "dollars": one.amount / MICROS,
        "gpu_dollars": one.gpu / MICROS,
        "disk_dollars": one.disk / MICROS,
        "traffic_dollars": one.traffic / MICROS,
        "paused_disk_dollars": one.paused_disk / MICROS,
        **{f"{name}_dollars": one.by_phase[name] / MICROS for name in PHASES},
        "waste_dollars": one.waste / MICROS,
        "paid_hours": one.paid / HOUR,
        **{f"{name}_hours": getattr(one, name) / HOUR for name in PHASES},
        "interruptions": one.interruptions,
        "dollars_per_useful_hour": one.per_useful_hour,
        "dollars_per_useful_dlperf_hour": one.per_useful_work,
        "unit": done.unit if done is not None else None,
        "units": done.number if done is not None else None,
        "dollars_per_unit": done.price(one.amount / MICROS) if done is not None else None,
    }


def saved(key: str, one: Saving) -> dict[str, Any]:
    """Return one row of a report of savings. A cost without a price to compare with has no figure."""
    return {
        "key": key,
        "dollars": one.spent / MICROS,
        "useful_hours": one.useful / HOUR,
        "compared_dollars": one.compared / MICROS if one.is_priced else None,
        "saved_dollars": one.saved / MICROS if one.saved is not None else None,
        "savings_ratio": one.ratio,
        "unpriced_dollars": one.unpriced / MICROS,
        "unknown_hours": one.unknown / HOUR,
    }


def measured(lost_work: Iterable[LostWork]) -> dict[str, Any]:
    """Return the lost work that guards measured, and the number of those interruptions."""
    known = [one.lost for one in lost_work if one.is_measured]
    return {"measured_interruptions": len(known), "measured_lost_hours": sum(known) / HOUR}


def report(by: str, rows: list[dict[str, Any]], total: dict[str, Any], **more: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """Return a report: its rows and their total."""
    return {"by": by, **more, "rows": rows, "total": {key: value for key, value in total.items() if key != "key"}}
