"""`gpubid ledger move`: a whole ledger between a file and a PostgreSQL server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.shared import exits, ledger_access, session

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.ledger.storage_port import Storage


def move(
    to: Annotated[str, typer.Option("--to", metavar="PLACE", help="postgresql://USER@HOST/DATABASE, or a file.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    schema_name: Annotated[str, typer.Option(help="The schema of this fleet on the server.")] = "gpubid",
    credential: Annotated[str | None, typer.Option(help="Name of the credential with the server's password.")] = None,
    credential_file: Annotated[Path | None, typer.Option(help="File with the server's password.")] = None,
) -> None:
    """Move the ledger while no daemon runs. gpubid compares both, marks the old one and keeps it."""
    from agent.clock import SystemClock
    from agent.ledger import ledger_move
    from agent.ledger.ledger_errors import LedgerError
    from agent.systemd import CredentialError

    settings, _ = session.read(config)
    try:
        target = _target(settings, to, schema_name, credential, credential_file)
        source = ledger_access.place_of(settings)
        with session.waiting("moving the ledger"):
            figures = ledger_move.move(source, target, SystemClock().now())
    except LedgerError as error:
        exits.refused(error)
    except CredentialError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    for name, table in figures.items():
        money = f", {table.money_micros / 1_000_000:.6f} dollars in its columns of money" if table.money_micros else ""
        session.say(f"  {name}: {table.rows} row(s){money}, digest {table.digest[:12]}")
    session.say(f"moved from {source.shown} to {target.shown}: rows, sums and digests are the same")
    key = "url" if "://" in to else "path"
    removed = "" if key == "url" else "remove url and "
    session.say(f'now {removed}write {key} = "{to}" under [ledger] in {settings.file}, before the daemon starts')


def _target(
    settings: "Config", to: str, schema_name: str, credential: str | None, credential_file: Path | None
) -> "Storage":
    from agent.ledger import server_address, storage

    if "://" not in to:
        return storage.of(Path(to))
    flaw = server_address.flaw(to)
    if flaw is not None:
        exits.stop(exits.BAD_INPUT, [f"--to: {flaw[1]}"])
    if not server_address.is_schema(schema_name):
        exits.stop(exits.BAD_INPUT, ["--schema-name: may hold lower-case letters, digits and _ only"])
    address = server_address.ServerAddress(to, schema_name, credential or "", credential_file)
    return storage.of(settings.ledger, address, session.ledger_password)
