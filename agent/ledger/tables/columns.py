"""The columns of the ledger's tables by their content, each with its checks."""

from collections.abc import Iterable
from enum import Enum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem

from agent.ledger.tables.types import (
    CleanText,
    EnumText,
    Flag,
    JsonText,
    MicroUsd,
    MicroUsdPerHour,
    UtcMicros,
)

METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def quoted(members: Iterable[Enum]) -> str:
    """Return the values of an enumeration as an SQL list."""
    return ", ".join(f"'{value}'" for value in sorted(member.value for member in members))


def enum(name: str, members: type[Enum], *, nullable: bool = False) -> list[SchemaItem]:
    """Return a column for a member of an enumeration."""
    column: sa.Column[Enum] = sa.Column(name, EnumText(members), nullable=nullable)
    return [column, sa.CheckConstraint(f"{name} IN ({quoted(members)})", name=name)]


def flag(*names: str) -> list[SchemaItem]:
    """Return columns for 0 or 1."""
    checks = [sa.CheckConstraint(f"{name} IN (0, 1)", name=name) for name in names]
    return [*(sa.Column(name, Flag, nullable=False) for name in names), *checks]


def not_negative(*names: str) -> list[SchemaItem]:
    """Return the checks that columns have no value below zero."""
    return [sa.CheckConstraint(f"{name} >= 0", name=name) for name in names]


def text(*names: str) -> list[SchemaItem]:
    """Return columns of text."""
    return [sa.Column(name, CleanText, nullable=False) for name in names]


def keys(*names: str) -> list[SchemaItem]:
    """Return columns of text that are the table's key, or part of it."""
    return [sa.Column(name, CleanText, primary_key=True) for name in names]


def times(*names: str) -> list[SchemaItem]:
    """Return columns of instants."""
    return [sa.Column(name, UtcMicros, nullable=False) for name in names]


def maybe_times(*names: str) -> list[SchemaItem]:
    """Return columns of instants that may be unknown."""
    return [sa.Column(name, UtcMicros) for name in names]


def rates(*names: str) -> list[SchemaItem]:
    """Return columns of money an hour."""
    return [sa.Column(name, MicroUsdPerHour, nullable=False) for name in names] + not_negative(*names)


def maybe_rates(*names: str) -> list[SchemaItem]:
    """Return columns of money an hour that may be unknown."""
    return [sa.Column(name, MicroUsdPerHour) for name in names] + not_negative(*names)


def amounts(*names: str) -> list[SchemaItem]:
    """Return columns of money."""
    return [sa.Column(name, MicroUsd, nullable=False) for name in names] + not_negative(*names)


def reals(*names: str) -> list[SchemaItem]:
    """Return columns of numbers."""
    return [sa.Column(name, sa.REAL, nullable=False) for name in names] + not_negative(*names)


def counts(*names: str) -> list[SchemaItem]:
    """Return columns of whole numbers."""
    return [sa.Column(name, sa.Integer, nullable=False) for name in names] + not_negative(*names)


def added_rates(*names: str) -> list[SchemaItem]:
    """Return columns of money an hour that a migration may add without rewriting the table: rows begin unknown."""
    return [sa.Column(name, MicroUsdPerHour) for name in names]


def from_zero(*names: str) -> list[SchemaItem]:
    """Return columns of counters that a migration may add without rewriting the table: rows begin at zero."""
    return [sa.Column(name, sa.Integer, nullable=False, server_default=sa.text("0")) for name in names]


def empty_text(*names: str) -> list[SchemaItem]:
    """Return columns of text that a migration may add without rewriting the table: rows begin with none."""
    return [sa.Column(name, CleanText, nullable=False, server_default=sa.text("''")) for name in names]


def pattern(name: str, glob: str, regex: str) -> list[SchemaItem]:
    """Return the check that a text has a form, in the words of either engine."""
    return [
        sa.CheckConstraint(f"{name} GLOB '{glob}'", name=name).ddl_if(dialect="sqlite"),
        sa.CheckConstraint(f"{name} ~ '{regex}'", name=name).ddl_if(dialect="postgresql"),
    ]


def partial_index(name: str, *of: sa.Column[Any], where: str, unique: bool = False) -> sa.Index:
    """Return an index of the rows that a condition in SQL names.

    PostgreSQL gets the same condition from `agent/ledger/server/dialect.py`: named here, SQLAlchemy would import all of
    its dialect for every ledger.
    """
    return sa.Index(name, *of, unique=unique, sqlite_where=sa.text(where))


def json(*names: str) -> list[SchemaItem]:
    """Return columns of JSON."""
    return [sa.Column(name, JsonText, nullable=False) for name in names]


def table(name: str, *groups: list[SchemaItem], has_rowid: bool = True, autoincrement: bool = False) -> sa.Table:
    """Return a table of groups of columns and checks, in the given order."""
    items = [item for group in groups for item in group]
    # SQLite keeps columns before constraints. The same order here makes the migration read like the table.
    items.sort(key=lambda item: not isinstance(item, sa.Column))
    return sa.Table(
        name,
        METADATA,
        *items,
        # PostgreSQL needs neither word: its types are always strict, and it never gives a number twice.
        sqlite_strict=True,
        sqlite_with_rowid=has_rowid,
        sqlite_autoincrement=autoincrement,
    )
