"""`gpubid lab record`: export the market that a ledger recorded, anonymised, for other machines and people."""

import asyncio
import secrets
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import exits, instants, session

if TYPE_CHECKING:
    from agent.lab.traces.ledger_export import Names

SALT = ".export-salt"
SALT_BYTES = 32


def record(
    ledger: Annotated[Path, typer.Argument(help="A ledger, in use or not, or a backup of one.")],
    out: Annotated[Path | None, typer.Option(help="The file to write; standard output by default.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Keep the names of hosts and owners.")] = False,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Begin at this time, UTC: 2d (ago) or 2026-11-20.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="End before this time, UTC.")] = None,
) -> None:
    """Export prices, searches and the ends of our own leases. Hosts and owners are hashed."""
    from agent.lab.traces import ledger_export

    if out is not None and out.exists():
        exits.stop(exits.BAD_INPUT, [f"--out {out}: exists already; name a file that does not"])
    span = instants.span(since, until)
    lines = asyncio.run(_lines(ledger, ledger_export.Names(None if plain else _salt(ledger)), span[0], span[1]))
    text = "\n".join(lines) + "\n"
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="ascii")
    except OSError as error:
        exits.stop(exits.BAD_INPUT, [f"--out {out}: cannot be written ({error.strerror}); name another file"])
    session.say(f"{len(lines)} lines were written to {out}")


async def _lines(path: Path, names: "Names", since: datetime | None, until: datetime | None) -> list[str]:
    from agent.lab.traces import ledger_export, ledger_history
    from agent.ledger.ledger_errors import LedgerError
    from agent.ledger.reader import open_reader

    try:
        reader = await open_reader(path)
        try:
            known = await ledger_history.read(reader, since, until)
            return list(ledger_export.lines(ledger_export.of_span(known, since, until), names))
        finally:
            await reader.close()
    except LedgerError as error:
        exits.refused(error)


def _salt(ledger: Path) -> bytes:
    """Return the salt beside a ledger. The first export makes it. A salt that cannot be stored is used only once."""
    from agent.ledger.file import sidecar
    from agent.ledger.ledger_errors import LedgerError

    file = sidecar.sibling(ledger, SALT)
    try:
        return bytes.fromhex(file.read_text("ascii").strip())
    except (OSError, ValueError):
        salt = secrets.token_bytes(SALT_BYTES)
    try:
        if ledger.exists():
            sidecar.write_whole(file, salt.hex() + "\n")
    except LedgerError:
        sys.stderr.write(f"gpubid: {file} cannot be written, so the next export has other names for hosts\n")
    return salt
