"""The check of a ledger: first the file by SQLite, then the rules between its rows."""

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.ledger import moved_marks
from agent.ledger.file import connection, migrate
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.tables import schema

DAY = "date({} / 1000000, 'unixepoch')"
_SHOWN = 20
"""The most listed findings of one kind: the next one would show nothing new."""

RULES: dict[str, str] = {
    "intent sent without a time": """SELECT intent_id FROM intents
        WHERE state IN ('sent', 'in_doubt', 'confirmed', 'rejected') AND sent_at IS NULL""",
    "intent denied after it was sent": "SELECT intent_id FROM intents WHERE state = 'denied' AND sent_at IS NOT NULL",
    "recorded intent with a time sent": """SELECT intent_id FROM intents
        WHERE state = 'recorded' AND sent_at IS NOT NULL""",
    "intent in doubt without a time": "SELECT intent_id FROM intents WHERE state = 'in_doubt' AND doubted_at IS NULL",
    "intent doubted before it was sent": """SELECT intent_id FROM intents
        WHERE doubted_at IS NOT NULL AND sent_at IS NULL""",
    "confirmed rent without an instance": """SELECT intent_id FROM intents
        WHERE kind = 'rent' AND state = 'confirmed' AND instance_id = ''""",
    "intent of a lease that is not there": """SELECT intent_id FROM intents
        WHERE lease_id <> '' AND lease_id NOT IN (SELECT lease_id FROM leases)""",
    "lease without an instance": "SELECT lease_id FROM leases WHERE instance_id = ''",
    "lease ended before it opened": "SELECT lease_id FROM leases WHERE ended_at < opened_at",
    "spend of another market than its lease": """SELECT spend.lease_id FROM spend JOIN leases USING (lease_id)
        WHERE spend.market <> leases.market""",
}

_ACCOUNTS: dict[str, str] = {
    "lease accrued before it opened": "SELECT lease_id FROM leases WHERE accrued_until < opened_at",
    "spend before its lease opened": """SELECT spend.lease_id FROM spend JOIN leases USING (lease_id)
        WHERE spend.day < {opened}""",
    "spend after its lease was accrued": """SELECT spend.lease_id FROM spend JOIN leases USING (lease_id)
        WHERE spend.day > {accrued}""",
    "more useful than running time": "SELECT lease_id FROM spend WHERE useful_seconds > running_seconds + 1",
    "more running time than a day has": "SELECT lease_id FROM spend WHERE running_seconds > 86401",
    "more running time than the lease lasted": """SELECT lease_id FROM leases JOIN spend USING (lease_id)
        GROUP BY lease_id HAVING sum(running_seconds) > (accrued_until - opened_at) / 1e6 + 1""",
}
"""Queries for sums that contradict each other: a stretch was dated wrongly, but no row is lost."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The findings of a check: none if the ledger is sound.

    `counted` is the number of rows of each table. `findings` are damage: rows that no gpubid wrote like this.
    `inconsistencies` are sums that contradict each other in an undamaged ledger. `moved` says why no daemon opens a
    ledger whose rows may all be sound: it was moved elsewhere. It is empty otherwise.
    """

    path: Path
    revision: str
    counted: dict[str, int]
    findings: tuple[str, ...]
    inconsistencies: tuple[str, ...] = ()
    moved: str = ""

    @property
    def is_damaged(self) -> bool:
        """Whether a backup must be restored."""
        return bool(self.findings)

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings and not self.inconsistencies


def refuse_unreadable(path: Path, way_out: str = "") -> None:
    """Raise LedgerError if this user may not read a ledger, which says nothing about the ledger itself."""
    try:
        is_readable = not path.exists() or os.access(path, os.R_OK)
    except PermissionError:
        is_readable = False
    if not is_readable:
        sentence = f"{path}: not yours to read; run this as the daemon's user{way_out}"
        raise LedgerError(Code.UNREADABLE, sentence)


def verify(path: Path) -> Verification:
    """Return the check of a ledger or a backup. It may be in use, and damage is a finding, not an error.

    Raises:
        LedgerError: OLDER_SCHEMA, NEWER_SCHEMA, UNRELEASED_SCHEMA: another release wrote it; that is no damage.
    """
    try:
        with closing(connection.connect(path, "ro")) as raw:
            raw.execute("BEGIN")
            return _verified(path, raw)
    except sqlite3.Error as error:
        return Verification(path, "", {}, (connection.in_our_words(error, path).sentence,))


def _verified(path: Path, raw: sqlite3.Connection) -> Verification:
    damage = _damage(raw)
    if damage:
        return Verification(path, "", {}, damage)
    revision = str(raw.execute("SELECT version_num FROM alembic_version").fetchone()[0])
    migrate.refuse_foreign(path, revision)
    migrate.refuse_unreleased(raw, path, revision)
    if revision != schema.REVISION:
        raise LedgerError(
            Code.OLDER_SCHEMA,
            f"{path} has schema {revision}, this gpubid reads {schema.REVISION}: the daemon upgrades it at its next "
            "start (`systemctl restart gpubid`)",
        )
    counted = {table: _count(raw, table) for table in schema.METADATA.tables}
    damage = _loose_tables(raw) + broken_rules(raw, RULES)
    return Verification(path, revision, counted, damage, broken_rules(raw, accounts(DAY)), moved(raw, str(path)))


def moved(raw: Any, shown: str) -> str:  # noqa: ANN401 - either driver's connection
    """Return why no daemon opens the ledger of a connection, which was moved; empty if it was not."""
    return moved_marks.sentence(dict(raw.execute("SELECT key, value FROM meta").fetchall()), shown)


def _count(raw: sqlite3.Connection, table: str) -> int:
    return int(raw.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])  # noqa: S608 - a name of our own schema


def _damage(raw: sqlite3.Connection) -> tuple[str, ...]:
    findings = [text for (text,) in raw.execute(f"PRAGMA integrity_check({_SHOWN})") if text != "ok"]
    findings += [f"row {row[1]} of {row[0]} refers to a missing row" for row in raw.execute("PRAGMA foreign_key_check")]
    return tuple(findings[:_SHOWN])


def _loose_tables(raw: sqlite3.Connection) -> tuple[str, ...]:
    strict = {row[1]: row[5] for row in raw.execute("PRAGMA table_list")}
    return tuple(f"table {name} is not STRICT" for name in schema.METADATA.tables if not strict.get(name))


def accounts(day: str) -> dict[str, str]:
    """Return the queries for contradicting sums; `day` is the engine's expression for the UTC day of an instant."""
    days = {"opened": day.format("leases.opened_at"), "accrued": day.format("leases.accrued_until")}
    return {rule: query.format(**days) for rule, query in _ACCOUNTS.items()}


def broken_rules(raw: Any, rules: dict[str, str]) -> tuple[str, ...]:  # noqa: ANN401 - either driver's connection
    """Return a finding for each row that breaks a rule, the first rows of each."""
    return tuple(
        f"{rule}: {row[0]}"
        for rule, query in rules.items()
        for row in raw.execute(f"{query} LIMIT {_SHOWN}").fetchall()
    )
