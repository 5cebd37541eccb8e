"""Every metric family of the program: its name, labels and meaning, and the label values that are known at the start.

Invariants:
1. No label holds an id, an offer number or a free text (the few names are in named_metrics.py).
2. Units are in the names, ages are timestamps, and only counters end in `_total`.
"""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

OPERATIONS = (
    "offers", "instances", "instance", "rent", "rebid", "resume", "pause", "release", "account", "charges", "events",
)  # fmt: skip
OUTCOMES = (
    "ok", "throttled", "unavailable", "malformed", "rejected", "not_found", "unauthorized", "out_of_funds", "ambiguous",
    "unfinished", "unreachable", "withheld", "cancelled", "bug",
)  # fmt: skip
LIMITS = (
    "per_instance_hour", "per_hour", "per_day", "per_month", "instances", "no_listing", "stale_view", "no_spend",
    "market_fault", "clock_skew", "no_credit", "credit_floor", "total", "max_price",
    "market_per_hour", "market_per_day", "market_per_month", "market_total",
    "workload_per_hour", "workload_per_day", "workload_per_month", "workload_total",
)  # fmt: skip
PAID = ("loading", "restoring", "working", "lost")
CHANNELS = ("webhook", "apprise", "hook")
DELIVERIES = ("delivered", "failed")
WINDOWS = ("day", "month")
PROTECTIONS = ("storm", "starts", "rejected", "market", "owner")
"""The scopes of the cooldowns that protections make (agent/decide/pricing/protections.py)."""

REQUEST_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
RECOVERY_SECONDS = (5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400)
CYCLE_SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60)


def registry() -> CollectorRegistry:
    """Return a registry with the figures of the process, the interpreter and its garbage."""
    fresh = CollectorRegistry()
    ProcessCollector(registry=fresh)
    PlatformCollector(registry=fresh)
    GCCollector(registry=fresh)
    return fresh


class Families:
    """The metrics of the program."""

    def __init__(self, target: CollectorRegistry) -> None:
        """Register everything with `target`."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._make_market(target)
        self._make_fleet(target)
        self._make_moments(target)
        self._make_unaccounted(target)
        self._make_shadows(target)
        self._make_money(target)
        self._make_program(target)
        self._make_ledger(target)

    @property
    def by_workload(self) -> tuple[Gauge, ...]:
        """The gauges that have one sample a workload."""
        return (
            self.slots_wanted,
            self.slots_running,
            self.slots_ready,
            self.slots_idle,
            self.slots_stalled,
            self.slots_held,
            self.slots_spare,
            self.headroom,
            self.deadline_at_risk,
        )

    def _make_market(self, target: CollectorRegistry) -> None:
        market = ("market",)
        self.market_available = Gauge(
            "gpubid_market_available", "Whether the market's complete listing was read in the last cycle.", market,
            registry=target,
        )  # fmt: skip
        self.market_fault = Gauge(
            "gpubid_market_fault", "Whether several leases vanished from the market's listing at once.", market,
            registry=target,
        )  # fmt: skip
        self.market_requests = Counter(
            "gpubid_market_requests_total", "Calls to a market by operation and how they ended.",
            ("market", "operation", "outcome"), registry=target,
        )  # fmt: skip
        self.market_request_duration = Histogram(
            "gpubid_market_request_duration_seconds", "How long calls to a market took, with the wait for their turn.",
            ("market", "operation"), registry=target, buckets=REQUEST_SECONDS,
        )  # fmt: skip
        self.market_view_timestamp = Gauge(
            "gpubid_market_view_timestamp_seconds", "When the last complete listing was read; 0 without one.", market,
            registry=target,
        )  # fmt: skip
        self.credit = Gauge(
            "gpubid_credit_dollars",
            "Credit of the account, as the market reports it; no sample if it reports none.",
            market,
            registry=target,
        )
        self.capability = Gauge(
            "gpubid_market_capability",
            "Whether the account can rent in a tenure there; 0 once the market says no; no sample before a cycle.",
            ("market", "tenure"), registry=target,
        )  # fmt: skip
        self.floor = Gauge(
            "gpubid_market_floor_dollars_per_hour",
            "Lowest floor among the last seen offers that fit the workload; no sample if none fits.",
            ("market", "workload"), registry=target,
        )  # fmt: skip
        self.ask = Gauge(
            "gpubid_market_ask_dollars_per_hour",
            "Lowest on-demand price among the last seen offers that fit the workload; no sample if none fits.",
            ("market", "workload"), registry=target,
        )  # fmt: skip
        self.clock_skew = Gauge("gpubid_clock_skew_seconds", "The market's clock less ours.", market, registry=target)
        self.rows_today = Gauge(
            "gpubid_search_rows_today",
            "Search rows that the market returned since 00:00 UTC, if it rations them.",
            market,
            registry=target,
        )

    def _make_fleet(self, target: CollectorRegistry) -> None:
        self.leases = Gauge(
            "gpubid_leases", "Open leases by tenure and state.", ("market", "tenure", "state"), registry=target
        )
        self.slots_wanted = Gauge(
            "gpubid_slots_wanted", "Configured slots that are not done.", ("workload",), registry=target
        )
        self.slots_running = Gauge(
            "gpubid_slots_running", "Slots with a running lease.", ("workload",), registry=target
        )
        self.slots_ready = Gauge(
            "gpubid_slots_ready", "Slots whose lease runs and is ready, if the workload reports readiness.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.slots_idle = Gauge(
            "gpubid_slots_idle", "Slots whose lease runs and whose GPUs do nothing.", ("workload",), registry=target
        )
        self.slots_stalled = Gauge(
            "gpubid_slots_stalled", "Slots whose lease runs and whose work shows no progress.", ("workload",),
            registry=target,
        )  # fmt: skip
        self.slots_held = Gauge(
            "gpubid_slots_held",
            "Slots that wait for a person, and slots without a running lease that a person stopped or locked.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.slots_spare = Gauge(
            "gpubid_slots_spare", "Spare slots that stay empty because they are not worth their price.", ("workload",),
            registry=target,
        )  # fmt: skip

    def _make_moments(self, target: CollectorRegistry) -> None:
        self.intents = Counter(
            "gpubid_intents_total", "Intents by kind and how they ended.", ("kind", "outcome"), registry=target
        )
        self.in_doubt = Gauge("gpubid_intents_in_doubt", "Intents whose outcome is not known.", registry=target)
        self.oldest_doubt = Gauge(
            "gpubid_oldest_in_doubt_timestamp_seconds",
            "When the oldest open doubt began; 0 without one.",
            registry=target,
        )
        self.interruptions = Counter(
            "gpubid_interruptions_total", "Losses of running leases that nobody asked for.",
            ("workload", "market", "cause"), registry=target,
        )  # fmt: skip
        self.recovery = Histogram(
            "gpubid_recovery_seconds",
            "Time from the loss of a lease until its slot reached a phase of recovery; the exemplar names the intent.",
            ("phase",), registry=target, buckets=RECOVERY_SECONDS,
        )  # fmt: skip
        self.flapping = Gauge(
            "gpubid_hosts_flapping", "Hosts that interrupted us three times or more within the last day.", ("market",),
            registry=target,
        )  # fmt: skip
        self.headroom = Gauge(
            "gpubid_bid_headroom_ratio", "Mean over running interruptible leases of bid over floor, less one.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.useful = Counter(
            "gpubid_useful_seconds_total", "Running time that survived to its next checkpoint.", ("workload",),
            registry=target,
        )  # fmt: skip
        self.paid = Counter(
            "gpubid_paid_seconds_total",
            "Paid time by phase: loading, restoring, working, and work that was lost later.",
            ("workload", "phase"), registry=target,
        )  # fmt: skip
        self.deadline_at_risk = Gauge(
            "gpubid_deadline_at_risk", "Whether a cap, a price or the time left endangers the workload's deadline.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.orphans = Gauge("gpubid_orphans", "Instances of ours that wait for a person to decide.", registry=target)
        self.protections = Gauge(
            "gpubid_protection_cooldowns", "Models, markets and owners that a protection keeps in cooldown now.",
            ("protection",), registry=target,
        )  # fmt: skip

    def _make_unaccounted(self, target: CollectorRegistry) -> None:
        self.unaccounted = Gauge(
            "gpubid_instances_unaccounted",
            "Listed instances with our label that no open lease, doubt or recorded orphan accounts for.", ("market",),
            registry=target,
        )  # fmt: skip
        self.unaccounted_listings = Gauge(
            "gpubid_unaccounted_listings", "Complete listings in a row that showed such an instance.", ("market",),
            registry=target,
        )  # fmt: skip
        self.after_kill = Gauge(
            "gpubid_billing_after_kill", "Leases, instances and doubts that a kill should end and that may still bill.",
            registry=target,
        )  # fmt: skip
        self.kill_timestamp = Gauge(
            "gpubid_kill_timestamp_seconds", "Time of the kill after which something still bills; 0 if nothing does.",
            registry=target,
        )  # fmt: skip

    def _make_shadows(self, target: CollectorRegistry) -> None:
        self.shadow_spend = Counter(
            "gpubid_shadow_spend_dollars_total",
            "Spend of a strategy beside the live one, on paper.", ("workload", "strategy"),
            registry=target,
        )  # fmt: skip
        self.shadow_useful = Counter(
            "gpubid_shadow_useful_seconds_total",
            "Useful time of a strategy beside the live one, on paper.", ("workload", "strategy"),
            registry=target,
        )  # fmt: skip
        self.shadow_interruptions = Counter(
            "gpubid_shadow_interruptions_total",
            "Interruptions of a strategy beside the live one, on paper.", ("workload", "strategy"),
            registry=target,
        )  # fmt: skip
        self.shadow_decisions = Counter(
            "gpubid_shadow_decisions_total",
            "New decisions of a strategy beside the live one; none is carried out.", ("workload", "strategy", "kind"),
            registry=target,
        )  # fmt: skip

    def _make_money(self, target: CollectorRegistry) -> None:
        self.spend = Counter(
            "gpubid_spend_dollars_total", "Spend, as the ledger counted it.", ("workload", "market", "tenure"),
            registry=target,
        )  # fmt: skip
        self.on_demand_worth = Counter(
            "gpubid_on_demand_worth_dollars_total",
            "Cost of the useful time at the lowest fitting on-demand price seen last; absent until one was seen.",
            ("workload",), registry=target,
        )  # fmt: skip
        self.spend_rate = Gauge(
            "gpubid_spend_dollars_per_hour",
            "Cost of everything per hour now, intents in doubt included.",
            registry=target,
        )
        self.budget_rate = Gauge(
            "gpubid_budget_dollars_per_hour", "The most everything may cost per hour.", registry=target
        )
        self.spent = Gauge(
            "gpubid_spent_dollars",
            "Spent in the present UTC day and month, up to the last cycle.",
            ("window",),
            registry=target,
        )
        self.budget_used = Gauge(
            "gpubid_budget_used_ratio", "Spent or committed as a share of a threshold; at 1 it is reached.",
            ("scope", "name", "window", "level"), registry=target,
        )  # fmt: skip
        self.credit_lasts = Gauge(
            "gpubid_credit_lasts_seconds", "How long credit lasts at the present rate; absent while that is not known.",
            ("market",), registry=target,
        )  # fmt: skip
        self.drift = Gauge(
            "gpubid_bill_drift_ratio",
            "Share by which the market charged more than the ledger counted, last UTC day compared; 0 within a cent.",
            ("market",), registry=target,
        )  # fmt: skip
        self.budget = Gauge(
            "gpubid_budget_dollars", "The most that may be spent in a UTC day and month.", ("window",), registry=target
        )

    def _make_program(self, target: CollectorRegistry) -> None:
        self.build = Gauge("gpubid_build_info", "The running version.", ("version",), registry=target)
        self.cycle_duration = Histogram(
            "gpubid_cycle_duration_seconds", "How long a cycle took.", registry=target, buckets=CYCLE_SECONDS
        )
        self.cycle_success = Gauge(
            "gpubid_cycle_last_success_timestamp_seconds", "When the last cycle succeeded.", registry=target
        )
        self.poll = Gauge(
            "gpubid_poll_seconds", "The poll in use: a cycle begins at least this often.", registry=target
        )
        self.cycles_failed = Counter("gpubid_cycles_failed_total", "Cycles that ended in an error.", registry=target)
        self.decisions = Counter(
            "gpubid_decisions_total", "Decisions by kind and reason.", ("kind", "reason"), registry=target
        )
        self.limits_struck = Counter(
            "gpubid_limits_struck_total", "Decisions that a limit forbade.", ("limit",), registry=target
        )
        self.notifications = Counter(
            "gpubid_notifications_total", "Attempts to send a notification, by channel and whether it arrived.",
            ("channel", "outcome"), registry=target,
        )  # fmt: skip
        self.reload_success = Gauge(
            "gpubid_config_last_reload_successful", "Whether the last reading of the configuration succeeded.",
            registry=target,
        )  # fmt: skip
        self.reload_timestamp = Gauge(
            "gpubid_config_last_reload_success_timestamp_seconds",
            "When a configuration was last loaded.",
            registry=target,
        )

    def _make_ledger(self, target: CollectorRegistry) -> None:
        self.ledger_writable = Gauge(
            "gpubid_ledger_writable", "Whether the ledger's last commit succeeded and its disk has room.",
            registry=target,
        )  # fmt: skip
        self.ledger_bytes = Gauge("gpubid_ledger_bytes", "Size of the ledger's file and its journal.", registry=target)
        self.ledger_disk_free = Gauge(
            "gpubid_ledger_disk_free_bytes",
            "Bytes that the daemon may still write on the ledger's disk.",
            registry=target,
        )
        self.backup_timestamp = Gauge(
            "gpubid_ledger_backup_timestamp_seconds", "When the newest backup was made; 0 without one.",
            registry=target,
        )  # fmt: skip
