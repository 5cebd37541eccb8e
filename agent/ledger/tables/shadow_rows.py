"""The conversion of shadows' accounts and decisions between the domain and their tables.

1. A shadow's rows are in separate tables: no sum of money, no event and no decision of the fleet reads them.
2. Decisions older than `KEPT_DAYS`, and all but the last `KEPT_DECISIONS` of a shadow, are deleted once a day.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from agent.domain.record.shadow_account import Counted, ShadowAccount, ShadowDecision
from agent.domain.slot import Slot
from agent.ledger import portable
from agent.ledger.tables import schema
from agent.ledger.tables.types import Query

KEPT_DAYS = 30
KEPT_DECISIONS = 2_000

STORED = portable.stored(schema.shadows)
MADE = sa.insert(schema.shadow_decisions)
ACCOUNTS = sa.select(schema.shadows).order_by(schema.shadows.c.workload, schema.shadows.c.strategy)
_PLAIN = ("workload", "strategy", "since", "seen_at", "interruptions", "starts", "rents", "position")
_COUNTED = ("spent", "paid", "useful", "lost")

CROWDED = sa.text("""
    DELETE FROM shadow_decisions WHERE decision_id IN (
        SELECT decision_id FROM (
            SELECT decision_id, row_number() OVER (
                PARTITION BY workload, strategy ORDER BY decision_id DESC
            ) AS place FROM shadow_decisions
        ) AS numbered WHERE place > :kept
    )
""").bindparams(kept=KEPT_DECISIONS)


def old(now: datetime) -> sa.Delete:
    """Return the statement that deletes decisions that are too old."""
    table = schema.shadow_decisions
    return sa.delete(table).where(table.c.at < now - timedelta(days=KEPT_DAYS))


def row(account: ShadowAccount) -> dict[str, Any]:
    """Return the columns of an account."""
    columns = {name: getattr(account, name) for name in _PLAIN}
    columns |= {name: getattr(account.counted, name) for name in _COUNTED}
    return columns | {f"live_{name}": getattr(account.live_before, name) for name in _COUNTED}


def account_of(columns: Mapping[str, Any]) -> ShadowAccount:
    """Return the account of a row."""
    return ShadowAccount(
        **{name: columns[name] for name in _PLAIN},
        counted=Counted(*(columns[name] for name in _COUNTED)),
        live_before=Counted(*(columns[f"live_{name}"] for name in _COUNTED)),
    )


def decision_row(workload: str, decision: ShadowDecision) -> dict[str, Any]:
    """Return the columns of a decision."""
    names = ("at", "strategy", "kind", "code", "sentence", "host_id")
    return {name: getattr(decision, name) for name in names} | {"workload": workload, "slot": decision.slot.index}


def decision_of(columns: Mapping[str, Any]) -> ShadowDecision:
    """Return the decision of a row."""
    names = ("at", "strategy", "kind", "code", "sentence", "host_id")
    slot = Slot(columns["workload"], columns["slot"])
    return ShadowDecision(slot=slot, **{name: columns[name] for name in names})


def kept(
    account: ShadowAccount, decisions: Iterable[ShadowDecision]
) -> list[tuple[sa.Executable, list[dict[str, Any]]]]:
    """Return the statements that store a shadow's figures and decisions, each with its rows."""
    rows = [decision_row(account.workload, each) for each in decisions]
    return [(STORED, [row(account)]), *([(MADE, rows)] if rows else [])]


def newest(workload: str | None, strategy: str | None, limit: int) -> Query:
    """Return the query for decisions, the newest first."""
    table = schema.shadow_decisions
    query = sa.select(table).order_by(table.c.decision_id.desc()).limit(limit)
    query = query if workload is None else query.where(table.c.workload == workload)
    return query if strategy is None else query.where(table.c.strategy == strategy)


def last_per_slot() -> Query:
    """Return the query for the last decision of each shadow for each slot."""
    table = schema.shadow_decisions
    last = sa.select(sa.func.max(table.c.decision_id)).group_by(table.c.workload, table.c.slot, table.c.strategy)
    order = (table.c.workload, table.c.slot, table.c.strategy)
    return sa.select(table).where(table.c.decision_id.in_(last)).order_by(*order)
