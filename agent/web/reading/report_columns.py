"""The columns of the reports of spend and savings, and how a figure is written, in verbs and page alike."""

from collections.abc import Mapping
from typing import Any

SPEND = {
    "dollars": "spent",
    "waste_dollars": "wasted",
    "paid_hours": "paid h",
    "useful_hours": "useful h",
    "lost_hours": "lost h",
    "restoring_hours": "restoring h",
    "loading_hours": "loading h",
    "interruptions": "interruptions",
    "dollars_per_useful_hour": "$/useful h",
}


def savings(report: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the columns of a report of savings; one is called by what it compares with."""
    return {
        "dollars": "spent",
        "compared_dollars": str(report["against"]),
        "saved_dollars": "saved",
        "savings_ratio": "share",
        "useful_hours": "useful h",
        "unknown_hours": "h without a price",
    }


def cell(name: str, value: float | None) -> str:
    """Return a figure as it is written in that column."""
    if value is None:
        return "-"
    if name == "savings_ratio":
        return f"{value:.1%}"
    if name == "interruptions":
        return str(value)
    return f"${value:.4f}" if "dollars" in name else f"{value:.2f}"
