"""Decisions as they are kept: one row when a slot's decision changes, not one a cycle."""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.domain import decision as decisions
from agent.domain.decision import Decision, Option, Reason, Rebid, Rent, Term
from agent.domain.money import UsdPerHour
from agent.domain.workload import Slot
from agent.ledger import schema
from agent.ledger.types import Query

MADE = sa.insert(schema.decisions)
_PLAIN = ("at", "kind", "lease_id", "offer_id", "bid", "rate", "strategy", "strategy_file", "params_digest")


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision without the values it was made on: `kind` is hold or the kind of its intent."""

    at: datetime
    slot: Slot
    kind: str
    reason: Reason
    lease_id: str = ""
    offer_id: str = ""
    bid: UsdPerHour | None = None
    rate: UsdPerHour | None = None
    strategy: str = ""
    strategy_file: str = ""
    params_digest: str = ""

    @property
    def gist(self) -> tuple[object, ...]:
        """What must differ for it to be news: figures in the sentence move every cycle."""
        return (self.kind, self.reason.code, self.lease_id, self.offer_id, self.bid, self.rate, self.params_digest)


def recorded(
    decision: Decision, at: datetime, *, strategy: str = "", strategy_file: str = "", params_digest: str = ""
) -> RecordedDecision:
    """Return what the ledger keeps of a decision."""
    kind = decisions.KIND.get(type(decision))
    lease = getattr(decision, "lease", None)
    return RecordedDecision(
        at=at,
        slot=decisions.slot_of(decision),
        kind=kind.value if kind is not None else "hold",
        reason=decision.reason,
        lease_id=lease.lease_id if lease is not None else "",
        offer_id=decision.offer.offer_id if isinstance(decision, Rent) else "",
        bid=decision.bid if isinstance(decision, Rent | Rebid) else None,
        rate=decision.rate if isinstance(decision, Rent) else None,
        strategy=strategy,
        strategy_file=strategy_file,
        params_digest=params_digest,
    )


def row(made: RecordedDecision) -> dict[str, Any]:
    """Return the columns of a decision."""
    columns = {name: getattr(made, name) for name in _PLAIN}
    reason = made.reason
    return columns | {
        "workload": made.slot.workload,
        "slot": made.slot.index,
        "code": reason.code,
        "sentence": reason.sentence,
        "limit_name": reason.limit,
        "options": [dataclasses.asdict(option) for option in reason.options],
    }


def decision_of(columns: Mapping[str, Any]) -> RecordedDecision:
    """Return the decision of a row."""
    options = tuple(
        Option(option["name"], option["dollars"], tuple(Term(**term) for term in option["terms"]))
        for option in columns["options"]
    )
    return RecordedDecision(
        slot=Slot(columns["workload"], columns["slot"]),
        reason=Reason(columns["code"], columns["sentence"], options, columns["limit_name"]),
        **{name: columns[name] for name in _PLAIN},
    )


def last_per_slot(slots: Collection[Slot] | None = None) -> Query:
    """Return the query for the last decision of each slot, of these slots only if they are named."""
    table = schema.decisions
    newest = sa.select(sa.func.max(table.c.decision_id))
    if slots is not None:
        named = [(place.workload, place.index) for place in slots]
        newest = newest.where(sa.tuple_(table.c.workload, table.c.slot).in_(named))
    return _last(newest)


def last_weighed_per_slot() -> Query:
    """Return the query for the last decision of each slot that chose among several ways."""
    table = schema.decisions
    return _last(sa.select(sa.func.max(table.c.decision_id)).where(sa.func.json_array_length(table.c.options) > 1))


def _last(numbers: "sa.Select[tuple[int]]") -> Query:
    table = schema.decisions
    last = numbers.group_by(table.c.workload, table.c.slot)
    return sa.select(table).where(table.c.decision_id.in_(last)).order_by(table.c.workload, table.c.slot)
