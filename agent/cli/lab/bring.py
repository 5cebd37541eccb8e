"""`gpubid lab import`: convert foreign records, and our own, to trace files for a bench."""

import json
import re
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import running
from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from agent.lab.traces.trace_files import Trace


class Kind(StrEnum):
    """The kind of a file."""

    CSV = "csv"
    AWS = "aws"
    VAST = "vast"
    LEDGER = "ledger"


SAID = {
    Kind.AWS: "AWS shows prices, not capacity: capacity counts as available from the first price on",
    Kind.VAST: "a search shows a sample of the market: counts are minimum counts",
    Kind.LEDGER: "only offers that a search asked for were seen: counts are minimum counts",
}


def bring(
    kind: Annotated[Kind, typer.Argument(help="csv, aws (describe-spot-price-history), vast (search offers), ledger.")],
    files: Annotated[list[Path], typer.Argument(help="Files; for vast also folders of files.")],
    out: Annotated[Path, typer.Option(help="The folder to write to, one file for each pool.")],
    gap_seconds: Annotated[int | None, typer.Option(min=1, max=86_400, help="Length of a tick.")] = None,
    at: Annotated[
        str | None, typer.Option(help="Time at which one search was saved; by default the time in the file's name.")
    ] = None,
) -> None:
    """Convert records of a market to trace files."""
    from agent.lab.importers import aws, ledger, table, vast

    if at is not None and (kind is not Kind.VAST or len(files) != 1 or files[0].is_dir()):
        exits.stop(exits.BAD_INPUT, ["--at goes with one file of kind vast; name it, or leave --at out"])
    with running.honest():
        if kind is Kind.VAST:
            traces = vast.read(files, gap_seconds, _instant(at))
        else:
            read = {Kind.CSV: table.read, Kind.AWS: aws.read, Kind.LEDGER: ledger.read}[kind]
            traces = read(files, gap_seconds)
    _write(traces, out)
    if kind in SAID:
        session.say(SAID[kind])


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        exits.stop(exits.BAD_INPUT, [f"--at {text}: is no instant; write such as 2026-11-20T18:00:00Z"])
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _write(traces: "list[Trace]", out: Path) -> None:
    """Write every trace, or none if one of the files exists."""
    from agent.lab.traces import trace_files

    named = {out / f"{_stem(each.pool)}.json": each for each in traces}
    if len(named) < len(traces):
        exits.stop(exits.BAD_INPUT, ["two pools would have one file name; import them apart"])
    for file in named:
        if file.exists():
            exits.stop(exits.BAD_INPUT, [f"--out: {file} exists already; name another folder"])
    try:
        out.mkdir(parents=True, exist_ok=True)
        for file, each in named.items():
            file.write_text(json.dumps(trace_files.document(each)) + "\n", encoding="ascii")
    except OSError as error:
        exits.stop(exits.BAD_INPUT, [f"--out {out}: cannot be written ({error.strerror}); name another folder"])
    for file, each in named.items():
        span = f"{each.start:%Y-%m-%d %H:%M} to {each.end:%Y-%m-%d %H:%M} UTC"
        up = float((each.available > 0).mean())
        session.say(f"{file}: {each.ticks} ticks of {each.gap_seconds} s, {span}, something there in {up:.0%}")


def _stem(pool: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", pool).strip("-.")[:100] or "pool"
