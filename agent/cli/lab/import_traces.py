"""`gpubid lab import`: convert foreign records, and our own, to trace files for a bench."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import running
from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.lab.traces.trace_files import Trace
    from agent.markets.market_record import SavedSearches


CSV, AWS, LEDGER = "csv", "aws", "ledger"
SAID = {
    AWS: "AWS shows prices, not capacity: capacity counts as available from the first price on",
    LEDGER: "only offers that a search asked for were seen: counts are minimum counts",
}
SAID_OF_SEARCHES = "a search shows a sample of the market: counts are minimum counts"


def kinds(incomplete: str) -> list[str]:
    """Return the kinds of files that begin so."""
    return [kind for kind in (CSV, AWS, LEDGER, *_searches()) if kind.startswith(incomplete)]


def _searches() -> "Mapping[str, SavedSearches]":
    from agent.markets import registered_markets

    records = registered_markets.installed()
    return {name: record.saved_searches for name, record in records.items() if record.saved_searches}


def bring(
    kind: Annotated[
        str,
        typer.Argument(
            help="csv, aws (describe-spot-price-history), ledger, or a market for its saved searches, such as vast.",
            autocompletion=kinds,
        ),
    ],
    files: Annotated[list[Path], typer.Argument(help="Files; for saved searches also folders of files.")],
    out: Annotated[Path, typer.Option(help="The folder to write to, one file for each pool.")],
    gap_seconds: Annotated[int | None, typer.Option(min=1, max=86_400, help="Length of a tick.")] = None,
    at: Annotated[
        str | None, typer.Option(help="Time at which one search was saved; by default the time in the file's name.")
    ] = None,
) -> None:
    """Convert records of a market to trace files."""
    from agent.lab.importers import aws, ledger, saved_search, table

    searches = _searches()
    if kind not in kinds(""):
        exits.stop(exits.BAD_INPUT, [f"{kind}: this kind of file is not known; name {', '.join(kinds(''))}"])
    if at is not None and (kind not in searches or len(files) != 1 or files[0].is_dir()):
        named = " or ".join(searches)
        exits.stop(exits.BAD_INPUT, [f"--at is for one file of kind {named}; name one such file, or leave --at out"])
    with running.honest():
        if kind in searches:
            traces = saved_search.read(files, searches[kind], gap_seconds, _instant(at))
        else:
            traces = {CSV: table.read, AWS: aws.read, LEDGER: ledger.read}[kind](files, gap_seconds)
    _write(traces, out)
    if kind in searches or kind in SAID:
        session.say(SAID.get(kind, SAID_OF_SEARCHES))


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
        exits.stop(exits.BAD_INPUT, ["two pools would get the same file name; import them one by one"])
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
        session.say(f"{file}: {each.ticks} ticks of {each.gap_seconds} s, {span}, capacity in {up:.0%} of them")


def _stem(pool: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", pool).strip("-.")[:100] or "pool"
