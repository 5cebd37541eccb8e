"""The columns and the format of figures in the reports of spend and savings, for the verbs and the page."""

from collections.abc import Mapping
from datetime import datetime
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
    """Return the columns of a report of savings. One has the name of the prices that it compares with."""
    return {
        "dollars": "spent",
        "compared_dollars": str(report["against"]).replace("_", " "),
        "saved_dollars": "saved",
        "savings_ratio": "share",
        "useful_hours": "useful h",
        "unpriced_dollars": "without a price",
        "unknown_hours": "h without a price",
    }


def of(report: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the columns of a report of either kind."""
    if "against" in report:
        return savings(report)
    has_units = any(row["unit"] is not None for row in report["rows"])
    return SPEND | {"units": "units", "dollars_per_unit": "$/unit"} if has_units else SPEND


def notes(report: Mapping[str, Any]) -> list[str]:
    """Return the notes below a report: sources, cards without a price, its instant, and the sum at that instant."""
    total = report["total"]
    sentences = [str(each) for each in report.get("cited", ())]
    if report.get("cut_before") is not None:
        cut, most = report["cut_before"], report["most_lines"]
        sentences.append(
            f"from {cut} on: a report reads at most {most:,} lines of a lease and day; ask for the days before with "
            f"until {cut}, or write them all with `gpubid ledger export --table spend`"
        )
    if report.get("unpriced"):
        against = "the on-demand market of that time" if report["against"] == "on_demand" else report["against"]
        left = f"${total['unpriced_dollars']:.4f} and {total['unknown_hours']:.2f} useful hours"
        sentences.append(
            f"{against} has no price for {', '.join(report['unpriced'])}: {left} are compared with nothing"
        )
    if report.get("measured_interruptions"):
        count, hours = report["measured_interruptions"], report["measured_lost_hours"]
        sentences.append(
            f"lost work of {count} of {total['interruptions']} interruptions is measured by guards: {hours:.2f} h, "
            f"{60 * hours / count:.1f} min each; that of the others follows from the checkpoint interval you wrote"
        )
    sentences += _of_units(report)
    together = total["dollars"] + total.get("unpriced_dollars", 0.0) + report["unmetered_dollars"]
    at = f"{datetime.fromisoformat(report['as_of']):%Y-%m-%d %H:%M:%S} UTC"
    since = f"${report['unmetered_dollars']:.4f} since the last metering, not in a row yet"
    return [*sentences, f"as of {at}: ${together:.4f} in all, with {since}"]


def _of_units(report: Mapping[str, Any]) -> list[str]:
    """Return the unit of each workload, and why its price is not known."""
    if report.get("units_cut"):
        return ["dollars per unit are of all days: a guard counts from the beginning; leave out since and until"]
    named = [row for row in report["rows"] if row.get("unit") is not None]
    return [
        f"{row['key']}: dollars per {row['unit']} are not known: no guard has reported more than 0, or it was renamed"
        if row["dollars_per_unit"] is None
        else f"{row['key']}: ${row['dollars_per_unit']:.6g} per {row['unit']}; guards reported {row['units']:.15g}"
        for row in named
    ]


def cell(name: str, value: float | None) -> str:
    """Return the text of a figure in that column."""
    if value is None:
        return "-"
    if name == "savings_ratio":
        return f"{value:.1%}"
    if name == "interruptions":
        return str(value)
    if name == "dollars_per_unit":
        return f"${value:.6g}"
    if "dollars" in name:
        return f"{'-' if value < 0 else ''}${abs(value):.4f}"
    return f"{value:.2f}"
