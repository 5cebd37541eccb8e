"""The conversion of holds, cooldowns, tallies and reported thresholds between the domain and their table."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.domain.money import Usd
from agent.domain.record import tally
from agent.domain.record.budget import Kind, Scope, Window
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import OperatorHold, Target, TargetKind, Word
from agent.domain.record.reported_crossing import CROSSED, ReportedCrossing
from agent.domain.record.tally import Counted, Tally
from agent.ledger import portable
from agent.ledger.tables import schema

STORED = portable.stored(schema.cooldowns)
LIFTED = sa.delete(schema.cooldowns).where(
    schema.cooldowns.c.scope == sa.bindparam("this_scope"), schema.cooldowns.c.key == sa.bindparam("this_key")
)
ALL = sa.select(schema.cooldowns)
_WORDS = frozenset(Word)
_COUNTED = frozenset(Counted)


def row(record: ExpiringRecord) -> dict[str, Any]:
    """Return the columns of a record."""
    scope, key = record.place
    since = None if isinstance(record, Cooldown) else record.since
    count = record.count if isinstance(record, Tally) else 1
    return {"scope": scope, "key": key, "since": since, "until": record.until, "code": record.ground, "count": count}


def record_of(columns: Mapping[str, Any]) -> ExpiringRecord:
    """Return the record of a row.

    Raises:
        ValueError: its kind is unknown, or it is a hold with an impossible target.
    """
    scope, key, until, ground = (columns[name] for name in ("scope", "key", "until", "code"))
    if scope == TargetKind.FLEET:
        return OperatorHold(Word.KILL, Target(TargetKind.FLEET, key), columns["since"], ground, until)
    if scope in _COUNTED:
        of, where = tally.parts_of(Counted(scope), key)
        return Tally(Counted(scope), of, columns["since"], until, ground, where, columns["count"])
    if scope == CROSSED:
        return _reported_crossing(key, columns["since"], until, ground)
    if scope not in _WORDS:
        return Cooldown(CooldownKind(scope), key, until, ground)
    target = Target.parse(key)
    if target is None:
        raise ValueError(f"the ledger has a hold {scope!r} about {key!r}, which cannot be held")
    return OperatorHold(Word(scope), target, columns["since"], ground, until)


def _reported_crossing(key: str, since: datetime, until: datetime | None, ground: str) -> ReportedCrossing:
    kind, of, *name, window, micros = key.split(" ")
    scope = Scope(Kind(of), " ".join(name))
    return ReportedCrossing(EventKind(kind), scope, Window(window), Usd(int(micros)), since, ground, until)


def named(place: tuple[str, str]) -> dict[str, str]:
    """Return the parameters that name a record, from its scope and key."""
    return {"this_scope": place[0], "this_key": place[1]}


def over(now: datetime) -> sa.Delete:
    """Return the statement that deletes records that are over."""
    return sa.delete(schema.cooldowns).where(schema.cooldowns.c.until <= now)
