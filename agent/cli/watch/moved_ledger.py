"""`gpubid ledger move`: a whole ledger between a file and a PostgreSQL server."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import exits, ledger_access, session
from agent.ledger import server_address

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.ledger.server_address import ServerAddress

_UNNAMED = "no password was given: --credential NAME or --credential-file FILE has that of the role in --to"


def move(
    to: Annotated[str, typer.Option("--to", metavar="PLACE", help="postgresql://USER@HOST/DATABASE, or a file.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    schema_name: Annotated[
        str, typer.Option(help="The schema of this fleet on the server.")
    ] = server_address.DEFAULT_SCHEMA,
    credential: Annotated[str | None, typer.Option(help="Name of the credential with the server's password.")] = None,
    credential_file: Annotated[Path | None, typer.Option(help="File with the server's password.")] = None,
) -> None:
    """Move the ledger while no daemon runs. gpubid compares both, marks the old one and keeps it."""
    from agent.clock import SystemClock
    from agent.ledger import ledger_move, storage
    from agent.ledger.ledger_errors import Code, LedgerError
    from agent.systemd import CredentialError

    settings, _ = session.read(config)
    server = _server(to, schema_name, credential, credential_file)
    place = to if server else str(_file(to))
    if server is None and settings.ledger_server is None and Path(place).resolve() == settings.ledger.resolve():
        exits.stop(exits.BAD_INPUT, [f"--to: {to} is the present ledger; name another file or a server"])
    try:
        target = storage.of(settings.ledger if server else Path(place), server, session.ledger_password)
        source = ledger_access.place_of(settings)
        with session.waiting("moving the ledger"):
            figures = ledger_move.move(source, target, SystemClock().now())
    except LedgerError as error:
        if error.code is Code.UNREACHABLE and server and not (credential or credential_file):
            session.warn(_UNNAMED)
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    for name, table in figures.items():
        money = f", {table.money_micros / 1_000_000:.6f} dollars in its columns of money" if table.money_micros else ""
        session.say(f"  {name}: {table.rows} row(s){money}, digest {table.digest[:12]}")
    session.say(f"moved from {source.shown} to {target.shown}: rows, sums and digests are the same")
    for line in _next(settings, place, server):
        session.say(line)


def _server(to: str, schema_name: str, credential: str | None, credential_file: Path | None) -> "ServerAddress | None":
    """Return the address of a server; None for a file, which has no password and no schema."""
    if "://" not in to:
        if credential or credential_file or schema_name != server_address.DEFAULT_SCHEMA:
            refusal = "--credential, --credential-file and --schema-name belong to a server, and --to names a file"
            exits.stop(exits.BAD_INPUT, [refusal])
        return None
    flaw = server_address.flaw(to)
    if flaw is not None:
        exits.stop(exits.BAD_INPUT, [f"--to: {flaw[1]}"])
    if not server_address.is_schema(schema_name):
        exits.stop(exits.BAD_INPUT, ["--schema-name: may hold lower-case letters, digits and _ only"])
    return server_address.ServerAddress(to, schema_name, credential or "", credential_file)


def _file(to: str) -> Path:
    """Return the file of a target, or end with a message: its small files are beside it, so it needs a name.

    The whole path is returned: the daemon's files are looked for in its own folder, not in that of this shell.
    """
    if not to.strip() or os.path.isdir(to):  # noqa: PTH112 - Path.is_dir raises where nobody may look
        what = f"{to} is a folder: name a file in it" if to.strip() else "is empty: name a file"
        exits.stop(exits.BAD_INPUT, [f"--to: {what}, or postgresql://USER@HOST/DATABASE"])
    return Path(to).absolute()


def _next(settings: "Config", to: str, server: "ServerAddress | None") -> list[str]:
    """Return what a person has to write under [ledger] after a move."""
    when = f"under [ledger] in {settings.file}, before the daemon starts"
    if server is None:
        return [f'now write path = "{to}" and remove url, with the keys that belong to it, {when}']
    keys = {"url": to, "credential": server.credential, "credential_file": server.credential_file}
    keys["schema_name"] = server.schema if server.schema != server_address.DEFAULT_SCHEMA else ""
    return [f"now write {when}:", *(f'  {key} = "{value}"' for key, value in keys.items() if value)]
