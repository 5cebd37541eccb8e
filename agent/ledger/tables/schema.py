"""The tables of the ledger. The migrations lead to exactly these tables, and a test compares the two.

1. Every table is STRICT; enumerations, flags and non-negative money are CHECKed by SQLite itself.
2. A unique index allows only one open paying intent per slot.
"""

import sqlalchemy as sa

from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import CooldownKind
from agent.domain.record.hold import TargetKind, Word
from agent.domain.record.intent import OPEN, IntentKind, IntentState
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.record.reported_crossing import CROSSED
from agent.domain.record.tally import Counted
from agent.ledger.tables import columns
from agent.ledger.tables.types import (
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

FIRST = "0100"
"""The schema of the first release. Earlier ones were never released, and there is no upgrade from them."""
REVISION = "0131"
"""The newest migration. It is a constant so that opening an up-to-date ledger does not import Alembic."""

METADATA = columns.METADATA

meta = columns.table(
    "meta",
    [sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False)],
)

leases = columns.table(
    "leases",
    [sa.Column("lease_id", sa.Text, primary_key=True)],
    columns.text("market", "instance_id", "workload"),
    columns.counts("slot"),
    columns.enum("tenure", Tenure),
    columns.enum("state", LeaseState),
    columns.text("host_id", "owner_id", "offer_id", "gpu"),
    columns.counts("gpus"),
    columns.reals("dlperf"),
    columns.rates("gpu_rate", "disk_rate"),
    columns.reals("disk_gb"),
    columns.times("opened_at", "state_since"),
    columns.enum("bills", Bills),
    columns.times("accrued_until"),
    columns.text("intent_id"),
    columns.maybe_rates("ask", "host_floor"),
    columns.maybe_times("ends_at"),
    columns.flag("has_run", "has_failed"),
    columns.maybe_times("run_since"),
    columns.flag("is_held", "paused_by_us"),
    columns.enum("interrupted_by", Cause, nullable=True),
    columns.maybe_rates("rival_floor"),
    [sa.Column("recent_bids", RatesText, nullable=False)],
    columns.maybe_times("bid_since"),
    columns.reals("traffic_down_gb", "traffic_up_gb"),
    columns.maybe_times("ended_at"),
    columns.text("end_reason", "spec_digest"),
    columns.maybe_times("ready_since"),
    columns.flag("was_ready"),
    columns.counts("runs"),
    columns.maybe_times("idle_since"),
    columns.text("ssh_address", "ports"),
    # These columns have no checks: SQLite can add columns without rewriting a table only if no check changes.
    [sa.Column("agreed_rate", MicroUsdPerHour), sa.Column("doubted_rate", MicroUsdPerHour)],
    columns.maybe_times("doubted_since"),
    columns.from_zero("doubted_listings"),
    columns.maybe_times("proven_at", "estranged_since", "vouched_at", "agreed_until"),
    [sa.Column("guard_run", sa.Integer)],
    columns.maybe_times("read_back_at", "checkpoint_asked_at"),
    [sa.Column("guard_terms", sa.Text)],
    columns.maybe_times("checkpoint_taken_at", "checkpoint_verified_at"),
    [sa.Column("vram_mb", sa.Integer)],
    columns.maybe_times("loading_since", "stop_seen_at"),
    columns.maybe_times("maintenance_told_at", "maintenance_begins_at", "maintenance_ends_at"),
    columns.from_zero("failed_probes", "restarts"),
    columns.maybe_times("probe_failed_at", "unhealthy_since", "restart_at"),
    columns.from_zero("ran_micros"),
    columns.maybe_times("stalled_since", "stalled_at", "keys_seen_at"),
    [*columns.empty_text("label_intent_id"), *columns.added_rates("bid_limit"), *columns.maybe_times("notice_at")],
    columns.from_zero("egress_micros_per_gb"),
    [sa.CheckConstraint("(state = 'ended') = (ended_at IS NOT NULL)", name="ended")],
)
columns.partial_index(
    "uq_leases_open_instance", leases.c.market, leases.c.instance_id, where="state <> 'ended'", unique=True
)
sa.Index("ix_leases_instance_id", leases.c.instance_id)
columns.partial_index("ix_leases_open", leases.c.state, where="state <> 'ended'")
sa.Index("ix_leases_opened_at", leases.c.opened_at)

_IS_OPEN = f"state IN ({columns.quoted(OPEN)})"
_IS_PAYING = f"kind IN ({columns.quoted([kind for kind in IntentKind if kind.is_paying])})"

intents = columns.table(
    "intents",
    [sa.Column("intent_id", sa.Text, primary_key=True)],
    columns.enum("kind", IntentKind),
    columns.enum("state", IntentState),
    columns.text("market", "workload"),
    columns.counts("slot"),
    columns.times("recorded_at"),
    columns.text("reason", "lease_id", "offer_id", "host_id", "instance_id"),
    columns.enum("tenure", Tenure, nullable=True),
    columns.maybe_rates("price"),
    columns.rates("rate"),
    columns.reals("disk_gb"),
    columns.maybe_times("sent_at", "doubted_at", "resolved_at"),
    columns.text("outcome"),
    [sa.Column("guard_run", sa.Integer), sa.Column("guard_terms", sa.Text)],
    [sa.Column("gpu", sa.Text), sa.Column("gpus", sa.Integer)],
    [sa.CheckConstraint(f"({_IS_OPEN}) = (resolved_at IS NULL)", name="resolved")],
)
columns.partial_index(
    "uq_intents_open_paying",
    intents.c.workload,
    intents.c.slot,
    where=f"{_IS_PAYING} AND {_IS_OPEN}",
    unique=True,
)
columns.partial_index("ix_intents_open", intents.c.state, where=_IS_OPEN)
sa.Index("ix_intents_recorded_at", intents.c.recorded_at)
sa.Index("ix_intents_lease_id", intents.c.lease_id)

events = columns.table(
    "events",
    [sa.Column("event_id", sa.Integer, primary_key=True)],
    columns.times("at"),
    columns.text("kind"),
    columns.pattern("kind", glob="?*.?*", regex=".[.]."),
    columns.maybe_times("seen_at"),
    columns.text("workload"),
    [sa.Column("slot", sa.Integer)],
    columns.text("lease_id", "intent_id", "market", "host_id"),
    columns.enum("cause", Cause, nullable=True),
    columns.text("rule", "evidence"),
    columns.maybe_rates("bid", "floor", "rate"),
    [sa.Column("amount", MicroUsd)],
    [*columns.text("reason_code", "reason"), *columns.maybe_times("notice_at")],
    autoincrement=True,
)
sa.Index("ix_events_at", events.c.at)
sa.Index("ix_events_lease_id_at", events.c.lease_id, events.c.at)
sa.Index("ix_events_workload_at", events.c.workload, events.c.at)

spend = columns.table(
    "spend",
    [
        sa.Column("lease_id", sa.Text, primary_key=True),
        sa.Column("day", DayText, primary_key=True),
        sa.Column("tenure", EnumText(Tenure), primary_key=True),
        sa.CheckConstraint(f"tenure IN ({columns.quoted(Tenure)})", name="tenure"),
    ],
    columns.text("workload", "market"),
    columns.amounts("gpu", "disk", "traffic"),
    columns.reals("running_seconds", "useful_seconds"),
    has_rowid=False,
)
sa.Index("ix_spend_day", spend.c.day)

phases = columns.table(
    "phases",
    [
        sa.Column("lease_id", sa.Text, primary_key=True),
        sa.Column("day", DayText, primary_key=True),
        sa.Column("tenure", EnumText(Tenure), primary_key=True),
        sa.CheckConstraint(f"tenure IN ({columns.quoted(Tenure)})", name="tenure"),
    ],
    columns.counts("paid", "loading", "restoring", "useful", "lost"),
    columns.amounts("paused_disk"),
    [sa.CheckConstraint("paid = loading + restoring + useful + lost", name="parts")],
    has_rowid=False,
)

losses = columns.table(
    "losses",
    [sa.Column("lease_id", sa.Text, primary_key=True), sa.Column("at", UtcMicros, primary_key=True)],
    columns.enum("cause", Cause),
    columns.counts("lost"),
    # It has no check, as in leases. NULL in older rows means not measured.
    [sa.Column("is_measured", Flag)],
    has_rowid=False,
)

bills = columns.table(
    "bills",
    [
        sa.Column("market", CleanText, primary_key=True),
        sa.Column("day", DayText, primary_key=True),
        sa.Column("instance_id", CleanText, primary_key=True),
    ],
    columns.text("lease_id"),
    columns.amounts("estimate"),
    columns.times("estimated_at"),
    [sa.Column("charged", MicroUsd)],
    columns.maybe_times("charged_at"),
    has_rowid=False,
)

prices = columns.table(
    "prices",
    columns.keys("market", "host_id"),
    [sa.Column("gpus", sa.Integer, primary_key=True), sa.Column("at", UtcMicros, primary_key=True)],
    columns.text("gpu"),
    columns.maybe_rates("ask", "floor"),
    has_rowid=False,
)

price_rollups = columns.table(
    "price_rollups",
    columns.keys("market", "gpu"),
    [sa.Column("gpus", sa.Integer, primary_key=True), sa.Column("hour", UtcHour, primary_key=True)],
    columns.counts("asks", "ask_sum"),
    columns.maybe_rates("ask_min", "ask_max"),
    columns.counts("floors", "floor_sum"),
    columns.maybe_rates("floor_min", "floor_max"),
    has_rowid=False,
)

_SCOPES = columns.quoted((*Word, *CooldownKind, *Counted, TargetKind.FLEET)) + f", '{CROSSED}'"
cooldowns = columns.table(
    "cooldowns",
    [sa.Column("scope", CleanText, primary_key=True), sa.Column("key", CleanText, primary_key=True)],
    columns.maybe_times("since", "until"),
    columns.text("code"),
    columns.counts("count"),
    # A record without an end has its beginning. A new scope needs a new schema, so that no older release overlooks a
    # hold.
    [sa.CheckConstraint(f"scope IN ({_SCOPES})", name="scope")],
    [sa.CheckConstraint("since IS NOT NULL OR until IS NOT NULL", name="time")],
    has_rowid=False,
)
sa.Index("ix_cooldowns_until", cooldowns.c.until)

hosts = columns.table(
    "hosts",
    [sa.Column("market", CleanText, primary_key=True), sa.Column("host_id", CleanText, primary_key=True)],
    columns.text("owner_id"),
    columns.reals("running_seconds", "interruptions", "starts_ok", "starts_failed"),
    columns.maybe_times("updated_at"),
    columns.reals("market_losses", "bid_seconds", "loaded_gb", "loading_seconds", "displaced"),
    columns.json("outbids"),
    columns.reals("weighed_hours"),
    has_rowid=False,
)

capacity = columns.table(
    "capacity",
    [sa.Column("market", CleanText, primary_key=True), sa.Column("pool", CleanText, primary_key=True)],
    columns.flag("is_there", "is_begun"),
    columns.times("since", "seen_at"),
    columns.maybe_rates("price"),
    columns.text("version"),
    columns.json("evidence", "there", "away"),
    columns.counts("looks"),
    has_rowid=False,
)

progress = columns.table(
    "progress",
    [sa.Column("workload", CleanText, primary_key=True)],
    columns.reals("hours"),
    columns.times("told_at", "since"),
    columns.text("source", "lease_id"),
    [sa.Column("number", sa.REAL)],
    has_rowid=False,
)

speeds = columns.table(
    "speeds",
    [sa.Column("workload", CleanText, primary_key=True), sa.Column("gpu", CleanText, primary_key=True)],
    columns.reals("hours", "running_hours"),
    has_rowid=False,
)

decisions = columns.table(
    "decisions",
    [sa.Column("decision_id", sa.Integer, primary_key=True)],
    columns.times("at"),
    columns.text("workload"),
    columns.counts("slot"),
    columns.text("kind", "code", "sentence", "limit_name"),
    [sa.Column("options", JsonText, nullable=False)],
    columns.text("lease_id", "offer_id"),
    columns.maybe_rates("bid", "rate"),
    columns.text("strategy", "strategy_file", "params_digest"),
    autoincrement=True,
)
sa.Index("ix_decisions_slot", decisions.c.workload, decisions.c.slot, decisions.c.decision_id)

shadows = columns.table(
    "shadows",
    columns.keys("workload", "strategy"),
    columns.times("since", "seen_at"),
    columns.amounts("spent", "live_spent"),
    columns.counts(
        "paid", "useful", "lost", "live_paid", "live_useful", "live_lost", "interruptions", "starts", "rents"
    ),
    [sa.Column("position", sa.LargeBinary, nullable=False)],
    has_rowid=False,
)

shadow_decisions = columns.table(
    "shadow_decisions",
    [sa.Column("decision_id", sa.Integer, primary_key=True)],
    columns.times("at"),
    columns.text("workload", "strategy", "kind", "code", "sentence", "host_id"),
    columns.counts("slot"),
    autoincrement=True,
)
_SHADOW = (shadow_decisions.c.workload, shadow_decisions.c.strategy, shadow_decisions.c.decision_id)
sa.Index("ix_shadow_decisions_shadow", *_SHADOW)

guard_runs = columns.table(
    "guard_runs",
    columns.keys("workload"),
    [sa.Column("slot", sa.Integer, primary_key=True), sa.Column("run", sa.Integer, primary_key=True)],
    columns.text("name", "spec_digest"),
    columns.times("begun_at"),
    has_rowid=False,
)

guard_figures = columns.table(
    "guard_figures",
    columns.keys("lease_id"),
    columns.text("workload"),
    columns.counts("slot"),
    columns.text("market", "host_id"),
    columns.counts("run", "stretch"),
    columns.times("told_at"),
    [sa.Column("progress", sa.REAL)],
    columns.text("manifest"),
    columns.maybe_times("kept_at"),
    [sa.Column("checkpoint_bytes", sa.Integer), sa.Column("took_seconds", sa.REAL)],
    [sa.Column("upload_seconds", sa.REAL), sa.Column("restore_seconds", sa.REAL)],
    columns.not_negative("checkpoint_bytes", "took_seconds", "upload_seconds", "restore_seconds"),
    has_rowid=False,
)

guard_notices = columns.table(
    "guard_notices",
    [sa.Column("lease_id", CleanText, primary_key=True), sa.Column("lost_at", UtcMicros, primary_key=True)],
    columns.text("market"),
    columns.flag("sigterm_seen"),
    columns.reals("seconds"),
    columns.times("told_at"),
    has_rowid=False,
)

host_checks = columns.table(
    "host_checks",
    columns.keys("lease_id"),
    columns.text("market", "host_id", "owner_id", "gpu"),
    columns.counts("gpus"),
    columns.reals("dlperf"),
    columns.times("checked_at"),
    [sa.Column("matmul_tflops", sa.REAL), sa.Column("copy_to_gpu_gbps", sa.REAL)],
    [sa.Column("copy_from_gpu_gbps", sa.REAL), sa.Column("disk_write_mbps", sa.REAL)],
    [sa.Column("power_share", sa.REAL), sa.Column("seen_gpus", sa.Integer), sa.Column("seen_gpu", CleanText)],
    [sa.Column("defect", CleanText), sa.Column("script", sa.Text), sa.Column("pcie_generation", sa.Integer)],
    [sa.Column("pcie_width", sa.Integer), sa.Column("pcie_share", sa.REAL), sa.Column("clock_events", sa.Integer)],
    has_rowid=False,
)

signs_of_life = columns.table(
    "signs_of_life",
    columns.keys("endpoint", "bucket", "prefix", "folder"),
    columns.times("due_at"),
    columns.maybe_times("written_at", "absent_until"),
    has_rowid=False,
)

looks = columns.table(
    "looks",
    [sa.Column("market", CleanText, primary_key=True), sa.Column("at", UtcMicros, primary_key=True)],
    [sa.Column("slices", JsonText, nullable=False)],
    has_rowid=False,
)

slices = columns.table(
    "slices",
    columns.keys("market", "host_id"),
    [sa.Column("gpus", sa.Integer, primary_key=True)],
    columns.times("seen_at"),
    [sa.Column("facts", JsonText, nullable=False)],
    has_rowid=False,
)
