"""The check of a ledger on a server: the rules between its rows, as for a file. The server checks its own pages."""

from pathlib import Path
from typing import Any

import psycopg

from agent.ledger.file import ledger_check
from agent.ledger.file.ledger_check import Verification
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server import server_tables
from agent.ledger.server_address import ServerAddress
from agent.ledger.tables import schema

DAY = "to_char(to_timestamp({} / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')"


def verify(raw: "psycopg.Connection[Any]", address: ServerAddress) -> Verification:
    """Return the check of a ledger, of one instant.

    Raises:
        LedgerError: MISSING, CORRUPT, OLDER_SCHEMA, NEWER_SCHEMA, UNRELEASED_SCHEMA.
        psycopg.Error: the server failed.
    """
    place = Path(address.shown)
    raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    revision = server_tables.revision(raw, address)
    if revision is None:
        raise LedgerError(Code.MISSING, f"there is no ledger at {address.shown}: start the daemon once (`gpubid run`)")
    if revision != schema.REVISION:
        raise LedgerError(
            Code.OLDER_SCHEMA,
            f"{address.shown} has schema {revision}, this gpubid reads {schema.REVISION}: the daemon upgrades it at "
            "its next start (`systemctl restart gpubid`)",
        )
    counted = {table: _count(raw, table) for table in schema.METADATA.tables}
    broken = ledger_check.broken_rules(raw, ledger_check.RULES)
    sums = ledger_check.broken_rules(raw, ledger_check.accounts(DAY))
    return Verification(place, revision, counted, broken, sums, ledger_check.moved(raw, address.shown))


def _count(raw: "psycopg.Connection[Any]", table: str) -> int:
    row = raw.execute(f'SELECT count(*) FROM "{table}"'.encode()).fetchone()  # noqa: S608 - a name of our own schema
    return 0 if row is None else int(row[0])
