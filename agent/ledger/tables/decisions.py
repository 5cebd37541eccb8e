"""Stored decisions: one row when a slot's decision changes, not one per cycle."""

import dataclasses
import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from agent.domain.money import UsdPerHour
from agent.domain.slot import Slot
from agent.domain.work import decision as decisions
from agent.domain.work.decision import Decision, Hold, Option, Reason, Rebid, Rent, Term
from agent.ledger import portable
from agent.ledger.tables import schema
from agent.ledger.tables.types import Query

KEPT_DAYS = 30
"""Older decisions are deleted. Intents have the orders and events the results; both are kept for good."""

MADE = sa.insert(schema.decisions)
_SAMPLE = re.compile(r"\d+ offers sampled at \d\d:\d\d UTC|found no offer at all.*")
"""The figures of the sample in the sentence of an empty slot, as `agent/decide/pricing/funnel.py` writes them."""
_OF_THE_FILE = frozenset({"array_waits", "array_unproven", "waits_for_workload", "window", "not_before"})
"""Codes of reasons whose sentence changes only with the file or the window, so that it is written again."""
_PLAIN = ("at", "kind", "lease_id", "offer_id", "bid", "rate", "strategy", "strategy_file", "params_digest")


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """A decision without its inputs: `kind` is hold or the kind of its intent."""

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
        """The parts that must differ for a new row; figures and samples in the sentence change without one."""
        sample = _SAMPLE.search(self.reason.sentence)
        best = sample[0] if sample is not None else ""
        best = self.reason.sentence if self.reason.code in _OF_THE_FILE else best
        return (
            self.kind,
            self.reason.code,
            self.lease_id,
            self.offer_id,
            self.bid,
            self.rate,
            self.params_digest,
            best,
        )


def recorded(
    decision: Decision, at: datetime, *, strategy: str = "", strategy_file: str = "", params_digest: str = ""
) -> RecordedDecision:
    """Return the ledger's part of a decision."""
    lease = getattr(decision, "lease", None)
    return RecordedDecision(
        at=at,
        slot=decisions.slot_of(decision),
        kind="hold" if isinstance(decision, Hold) else decisions.kind_of(decision).value,
        reason=decision.reason,
        lease_id=lease.lease_id if lease is not None else "",
        offer_id=decision.offer.offer_id if isinstance(decision, Rent) else "",
        bid=decision.bid if isinstance(decision, Rent | Rebid) else None,
        rate=decision.rate if isinstance(decision, Rent) else None,
        strategy=strategy,
        strategy_file=strategy_file,
        params_digest=params_digest,
    )


def row(decision: RecordedDecision) -> dict[str, Any]:
    """Return the columns of a decision."""
    columns = {name: getattr(decision, name) for name in _PLAIN}
    reason = decision.reason
    return columns | {
        "workload": decision.slot.workload,
        "slot": decision.slot.index,
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


def last_per_slot() -> Query:
    """Return the query for the last decision of each slot."""
    return _last(_newest(schema.decisions, is_weighed=False))


def last_of(slots: Collection[Slot]) -> Query:
    """Return the query for the last decision of each of these slots, of a few hundred at most.

    Each is found directly by its index. A grouping would read all decisions ever made.
    """
    return _last_of(tuple(slots))


@functools.lru_cache(maxsize=32)
def _last_of(slots: tuple[Slot, ...]) -> Query:
    """Return that query from a cache: building it costs more than running it, and screens repeat the same query."""
    table = schema.decisions
    newest = sa.func.max(table.c.decision_id)
    found = [
        sa.select(newest).where(table.c.workload == place.workload, table.c.slot == place.index) for place in slots
    ]
    return _last(sa.union_all(*found) if found else sa.select(sa.cast(sa.null(), sa.Integer)))


def last_weighed_per_slot() -> Query:
    """Return the query for the last decision of each slot that chose among several ways."""
    return _last(_newest(schema.decisions, is_weighed=True))


def old(now: datetime) -> sa.Delete:
    """Return the statement that deletes old decisions, except each slot's last and its last weighed one.

    The numbers come from an alias, because SQLAlchemy would take the inner table for the deleted row.
    """
    table, twin = schema.decisions, schema.decisions.alias()
    is_last = table.c.decision_id.in_(_newest(twin, is_weighed=False))
    is_weighed = table.c.decision_id.in_(_newest(twin, is_weighed=True))
    return sa.delete(table).where(table.c.at < now - timedelta(days=KEPT_DAYS), ~is_last, ~is_weighed)


def _newest(table: sa.FromClause, *, is_weighed: bool) -> "sa.Select[tuple[int]]":
    newest = sa.select(sa.func.max(table.c.decision_id))
    weighed = portable.json_length(table.c.options) > 1
    return (newest.where(weighed) if is_weighed else newest).group_by(table.c.workload, table.c.slot)


def _last(numbers: "sa.SelectBase") -> Query:
    table = schema.decisions
    return sa.select(table).where(table.c.decision_id.in_(numbers)).order_by(table.c.workload, table.c.slot)
