"""The tables of the ledger; migrations lead to exactly these, and a test compares the two.

1. Every table is STRICT; enumerations, flags and non-negative money are CHECKed by SQLite itself.
2. One open paying intent per slot is a unique index, not only a habit.
"""

from collections.abc import Iterable
from enum import Enum

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem

from agent.domain.intent import OPEN, IntentKind, IntentState
from agent.domain.interruption import Cause
from agent.domain.lease import Bills, LeaseState
from agent.domain.tenure import Tenure
from agent.ledger.types import (
    CleanText,
    DayText,
    EnumText,
    Flag,
    JsonText,
    MicroUsd,
    MicroUsdPerHour,
    RatesText,
    UtcHour,
    UtcMicros,
)

REVISION = "0007"
"""The newest migration. It stands here so that opening an up-to-date ledger need not import Alembic."""

METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _quoted(members: Iterable[Enum]) -> str:
    return ", ".join(f"'{value}'" for value in sorted(member.value for member in members))


def _enum(name: str, members: type[Enum], *, nullable: bool = False) -> list[SchemaItem]:
    column: sa.Column[Enum] = sa.Column(name, EnumText(members), nullable=nullable)
    return [column, sa.CheckConstraint(f"{name} IN ({_quoted(members)})", name=name)]


def _flag(name: str) -> list[SchemaItem]:
    return [sa.Column(name, Flag, nullable=False), sa.CheckConstraint(f"{name} IN (0, 1)", name=name)]


def _not_negative(*names: str) -> list[SchemaItem]:
    return [sa.CheckConstraint(f"{name} >= 0", name=name) for name in names]


def _text(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, CleanText, nullable=False) for name in names]


def _keys(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, CleanText, primary_key=True) for name in names]


def _times(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, UtcMicros, nullable=False) for name in names]


def _maybe_times(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, UtcMicros) for name in names]


def _rates(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, MicroUsdPerHour, nullable=False) for name in names] + _not_negative(*names)


def _maybe_rates(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, MicroUsdPerHour) for name in names] + _not_negative(*names)


def _amounts(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, MicroUsd, nullable=False) for name in names] + _not_negative(*names)


def _reals(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, sa.REAL, nullable=False) for name in names] + _not_negative(*names)


def _counts(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, sa.Integer, nullable=False) for name in names] + _not_negative(*names)


def _json(*names: str) -> list[SchemaItem]:
    return [sa.Column(name, JsonText, nullable=False) for name in names]


def _table(name: str, *groups: list[SchemaItem], has_rowid: bool = True, autoincrement: bool = False) -> sa.Table:
    items = [item for group in groups for item in group]
    # SQLite keeps columns before constraints; so do we, and the migration reads like the table.
    items.sort(key=lambda item: not isinstance(item, sa.Column))
    return sa.Table(
        name,
        METADATA,
        *items,
        sqlite_strict=True,
        sqlite_with_rowid=has_rowid,
        sqlite_autoincrement=autoincrement,
    )


meta = _table(
    "meta",
    [sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)],
)

leases = _table(
    "leases",
    [sa.Column("lease_id", sa.Text, primary_key=True)],
    _text("market", "instance_id", "workload"),
    _counts("slot"),
    _enum("tenure", Tenure),
    _enum("state", LeaseState),
    _text("host_id", "owner_id", "offer_id", "gpu"),
    _counts("gpus"),
    _reals("dlperf"),
    _rates("gpu_rate", "disk_rate"),
    _reals("disk_gb"),
    _times("opened_at", "state_since"),
    _enum("bills", Bills),
    _times("accrued_until"),
    _text("intent_id"),
    _maybe_rates("ask", "host_floor"),
    _maybe_times("ends_at"),
    _flag("has_run"),
    _flag("has_failed"),
    _maybe_times("run_since"),
    _flag("is_held"),
    _flag("paused_by_us"),
    _enum("interrupted_by", Cause, nullable=True),
    _maybe_rates("rival_floor"),
    [sa.Column("recent_bids", RatesText, nullable=False)],
    _maybe_times("bid_since"),
    _reals("traffic_down_gb", "traffic_up_gb"),
    _maybe_times("ended_at"),
    _text("end_reason", "spec_digest"),
    _maybe_times("ready_since"),
    _flag("was_ready"),
    _counts("runs"),
    _maybe_times("idle_since"),
    _text("ssh_address", "ports"),
    [
        sa.CheckConstraint("(state = 'ended') = (ended_at IS NOT NULL)", name="ended"),
    ],
)
sa.Index(
    "uq_leases_open_instance",
    leases.c.market,
    leases.c.instance_id,
    unique=True,
    sqlite_where=sa.text("state <> 'ended'"),
)
sa.Index("ix_leases_instance_id", leases.c.instance_id)
sa.Index("ix_leases_open", leases.c.state, sqlite_where=sa.text("state <> 'ended'"))
sa.Index("ix_leases_opened_at", leases.c.opened_at)

_IS_OPEN = f"state IN ({_quoted(OPEN)})"
_IS_PAYING = f"kind IN ({_quoted([kind for kind in IntentKind if kind.is_paying])})"

intents = _table(
    "intents",
    [sa.Column("intent_id", sa.Text, primary_key=True)],
    _enum("kind", IntentKind),
    _enum("state", IntentState),
    _text("market", "workload"),
    _counts("slot"),
    _times("recorded_at"),
    _text("reason", "lease_id", "offer_id", "host_id", "instance_id"),
    _enum("tenure", Tenure, nullable=True),
    _maybe_rates("price"),
    _rates("rate"),
    _reals("disk_gb"),
    _maybe_times("sent_at", "doubted_at", "resolved_at"),
    _text("outcome"),
    [sa.CheckConstraint(f"({_IS_OPEN}) = (resolved_at IS NULL)", name="resolved")],
)
sa.Index(
    "uq_intents_open_paying",
    intents.c.workload,
    intents.c.slot,
    unique=True,
    sqlite_where=sa.text(f"{_IS_PAYING} AND {_IS_OPEN}"),
)
sa.Index("ix_intents_open", intents.c.state, sqlite_where=sa.text(_IS_OPEN))
sa.Index("ix_intents_recorded_at", intents.c.recorded_at)
sa.Index("ix_intents_lease_id", intents.c.lease_id)

events = _table(
    "events",
    [sa.Column("event_id", sa.Integer, primary_key=True)],
    _times("at"),
    _text("kind"),
    [sa.CheckConstraint("kind GLOB '?*.?*'", name="kind")],
    _maybe_times("seen_at"),
    _text("workload"),
    [sa.Column("slot", sa.Integer)],
    _text("lease_id", "intent_id", "market", "host_id"),
    _enum("cause", Cause, nullable=True),
    _text("rule", "evidence"),
    _maybe_rates("bid", "floor", "rate"),
    [sa.Column("amount", MicroUsd)],
    _text("reason_code", "reason"),
    autoincrement=True,
)
sa.Index("ix_events_at", events.c.at)
sa.Index("ix_events_lease_id_at", events.c.lease_id, events.c.at)
sa.Index("ix_events_workload_at", events.c.workload, events.c.at)

spend = _table(
    "spend",
    [
        sa.Column("lease_id", sa.Text, primary_key=True),
        sa.Column("day", DayText, primary_key=True),
        sa.Column("tenure", EnumText(Tenure), primary_key=True),
        sa.CheckConstraint(f"tenure IN ({_quoted(Tenure)})", name="tenure"),
    ],
    _text("workload", "market"),
    _amounts("gpu", "disk", "traffic"),
    _reals("running_seconds", "useful_seconds"),
    has_rowid=False,
)
sa.Index("ix_spend_day", spend.c.day)

phases = _table(
    "phases",
    [
        sa.Column("lease_id", sa.Text, primary_key=True),
        sa.Column("day", DayText, primary_key=True),
        sa.Column("tenure", EnumText(Tenure), primary_key=True),
        sa.CheckConstraint(f"tenure IN ({_quoted(Tenure)})", name="tenure"),
    ],
    _counts("paid", "loading", "restoring", "useful", "lost"),
    _amounts("paused_disk"),
    [sa.CheckConstraint("paid = loading + restoring + useful + lost", name="parts")],
    has_rowid=False,
)

losses = _table(
    "losses",
    [sa.Column("lease_id", sa.Text, primary_key=True), sa.Column("at", UtcMicros, primary_key=True)],
    _enum("cause", Cause),
    _counts("lost"),
    has_rowid=False,
)

bills = _table(
    "bills",
    [
        sa.Column("market", CleanText, primary_key=True),
        sa.Column("day", DayText, primary_key=True),
        sa.Column("instance_id", CleanText, primary_key=True),
    ],
    _text("lease_id"),
    _amounts("estimate"),
    _times("estimated_at"),
    [sa.Column("charged", MicroUsd)],
    _maybe_times("charged_at"),
    has_rowid=False,
)

prices = _table(
    "prices",
    [
        sa.Column("market", CleanText, primary_key=True),
        sa.Column("host_id", CleanText, primary_key=True),
        sa.Column("gpus", sa.Integer, primary_key=True),
        sa.Column("at", UtcMicros, primary_key=True),
    ],
    _text("gpu"),
    _maybe_rates("ask", "floor"),
    has_rowid=False,
)

price_rollups = _table(
    "price_rollups",
    [
        sa.Column("market", CleanText, primary_key=True),
        sa.Column("gpu", CleanText, primary_key=True),
        sa.Column("gpus", sa.Integer, primary_key=True),
        sa.Column("hour", UtcHour, primary_key=True),
    ],
    _counts("asks", "ask_sum"),
    _maybe_rates("ask_min", "ask_max"),
    _counts("floors", "floor_sum"),
    _maybe_rates("floor_min", "floor_max"),
    has_rowid=False,
)

cooldowns = _table(
    "cooldowns",
    [sa.Column("scope", CleanText, primary_key=True), sa.Column("key", CleanText, primary_key=True)],
    _times("until"),
    _text("code"),
    has_rowid=False,
)
sa.Index("ix_cooldowns_until", cooldowns.c.until)

hosts = _table(
    "hosts",
    [sa.Column("market", CleanText, primary_key=True), sa.Column("host_id", CleanText, primary_key=True)],
    _text("owner_id"),
    _reals("running_seconds", "interruptions", "starts_ok", "starts_failed"),
    _maybe_times("updated_at"),
    _reals("market_losses", "bid_seconds", "loaded_gb", "loading_seconds"),
    has_rowid=False,
)

capacity = _table(
    "capacity",
    [sa.Column("market", CleanText, primary_key=True), sa.Column("pool", CleanText, primary_key=True)],
    _flag("is_there"),
    _flag("is_begun"),
    _times("since", "seen_at"),
    _maybe_rates("price"),
    _text("version"),
    _json("evidence", "there", "away"),
    _counts("looks"),
    has_rowid=False,
)

progress = _table(
    "progress",
    [sa.Column("workload", CleanText, primary_key=True)],
    _reals("hours"),
    _times("told_at", "since"),
    _text("source", "lease_id"),
    has_rowid=False,
)

speeds = _table(
    "speeds",
    [sa.Column("workload", CleanText, primary_key=True), sa.Column("gpu", CleanText, primary_key=True)],
    _reals("hours", "running_hours"),
    has_rowid=False,
)

decisions = _table(
    "decisions",
    [sa.Column("decision_id", sa.Integer, primary_key=True)],
    _times("at"),
    _text("workload"),
    _counts("slot"),
    _text("kind", "code", "sentence", "limit_name"),
    [sa.Column("options", JsonText, nullable=False)],
    _text("lease_id", "offer_id"),
    _maybe_rates("bid", "rate"),
    _text("strategy", "strategy_file", "params_digest"),
    autoincrement=True,
)
sa.Index("ix_decisions_slot", decisions.c.workload, decisions.c.slot, decisions.c.decision_id)

shadows = _table(
    "shadows",
    _keys("workload", "strategy"),
    _times("since", "seen_at"),
    _amounts("spent", "live_spent"),
    _counts("paid", "useful", "lost", "live_paid", "live_useful", "live_lost", "interruptions", "starts", "rents"),
    [sa.Column("position", sa.LargeBinary, nullable=False)],
    has_rowid=False,
)

shadow_decisions = _table(
    "shadow_decisions",
    [sa.Column("decision_id", sa.Integer, primary_key=True)],
    _times("at"),
    _text("workload", "strategy", "kind", "code", "sentence", "host_id"),
    _counts("slot"),
    autoincrement=True,
)
_SHADOW = (shadow_decisions.c.workload, shadow_decisions.c.strategy, shadow_decisions.c.decision_id)
sa.Index("ix_shadow_decisions_shadow", *_SHADOW)

looks = _table(
    "looks",
    [sa.Column("market", CleanText, primary_key=True), sa.Column("at", UtcMicros, primary_key=True)],
    [sa.Column("slices", JsonText, nullable=False)],
    has_rowid=False,
)

slices = _table(
    "slices",
    _keys("market", "host_id"),
    [sa.Column("gpus", sa.Integer, primary_key=True)],
    _times("seen_at"),
    [sa.Column("facts", JsonText, nullable=False)],
    has_rowid=False,
)
