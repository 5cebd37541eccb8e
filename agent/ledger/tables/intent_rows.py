"""The conversion of intents between the domain and their table, and their changes of state."""

import dataclasses
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.domain.record import intent as intents
from agent.domain.record.intent import Intent, IntentState
from agent.domain.slot import Slot
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.tables import schema
from agent.ledger.tables.types import Query

_FIELDS = tuple(field.name for field in dataclasses.fields(Intent) if field.name != "slot")
_STAMP = {IntentState.SENT: "sent_at", IntentState.IN_DOUBT: "doubted_at"}

RECORDED = sa.insert(schema.intents)
ADVANCED = sa.update(schema.intents).where(schema.intents.c.intent_id == sa.bindparam("this_intent"))
OPEN = sa.select(schema.intents).where(schema.intents.c.state.in_(sorted(intents.OPEN, key=lambda state: state.value)))


def row(intent: Intent) -> dict[str, Any]:
    """Return the columns of an intent."""
    columns = {name: getattr(intent, name) for name in _FIELDS}
    return columns | {"workload": intent.slot.workload, "slot": intent.slot.index}


def intent_of(columns: Mapping[str, Any]) -> Intent:
    """Return the intent of a row."""
    return Intent(slot=Slot(columns["workload"], columns["slot"]), **{name: columns[name] for name in _FIELDS})


def advanced(intent: Intent, state: IntentState, at: datetime, learned: Mapping[str, str]) -> Intent:
    """Return the intent in its next state, with its time and the `learned` texts (empty ones change nothing).

    Raises:
        LedgerError: BAD_TRANSITION, the table of transitions does not allow the change.
    """
    if state not in intents.ALLOWED[intent.state]:
        raise LedgerError(
            Code.BAD_TRANSITION,
            f"intent {intent.intent_id} is {intent.state.value} and may not become {state.value}: this is a defect, "
            "report it",
        )
    changes: dict[str, Any] = {name: text for name, text in learned.items() if text}
    changes[_STAMP.get(state, "resolved_at")] = at
    return dataclasses.replace(intent, state=state, **changes)


def newest(limit: int, ids: Collection[str] | None = None, leases: Collection[str] | None = None) -> Query:
    """Return the query for intents in any state, the last recorded first; if ids or leases are named, only those."""
    table = schema.intents
    query = sa.select(table).order_by(table.c.recorded_at.desc(), table.c.intent_id).limit(limit)
    query = query if leases is None else query.where(table.c.lease_id.in_(leases))
    return query if ids is None else query.where(table.c.intent_id.in_(ids))
