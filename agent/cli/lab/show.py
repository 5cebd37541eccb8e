"""`gpubid lab show`: show what a trace file, or a folder of them, contains."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.lab import running
from agent.cli.shared import session

if TYPE_CHECKING:
    from agent.lab.traces.trace_summary import Range, Summary

NONE = "-"


def show(
    traces: Annotated[Path, typer.Argument(help="A trace file, or a folder with a file for each pool.")],
    as_json: session.JsonOption = False,
) -> None:
    """Show the contents of traces: span, tick, how often capacity was there, how long it stayed, and prices."""
    from agent.lab.traces import trace_files as files
    from agent.lab.traces import trace_summary

    with running.honest():
        summaries = [trace_summary.of(trace) for trace in files.folder(traces)]
    if as_json:
        session.print_json({"pools": [_document(each) for each in summaries]})
        return
    shown = session.table(
        "pool", "from", "hours", "tick s", "up", "losses", "stays h", "away h", "spot $/h", "on demand"
    )
    for each in summaries:
        session.add(shown, *_cells(each))
    session.show(shown)
    unpriced = sum(each.unpriced for each in summaries)
    if unpriced:
        session.say(f"{unpriced:,} ticks lack a price: give a bench one with --spot-price and --on-demand-price")


def _cells(each: "Summary") -> list[str]:
    hours = each.ticks * each.gap_seconds / 3600
    ends = [NONE if value is None else f"{value:.2f}" for value in (each.stays, each.gaps)]
    return [
        each.pool,
        f"{each.start:%Y-%m-%d %H:%M}",
        f"{hours:.0f}",
        f"{each.gap_seconds}",
        f"{each.up_share:.1%}",
        f"{each.losses:,}",
        *ends,
        _price(each.spot),
        _price(each.on_demand),
    ]


def _price(prices: "Range") -> str:
    if prices is None:
        return NONE
    low, high = prices
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _document(each: "Summary") -> dict[str, Any]:
    return dataclasses.asdict(each) | {"start": each.start.isoformat(), "end": each.end.isoformat()}
