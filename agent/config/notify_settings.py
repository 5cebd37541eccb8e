"""Notifications: rules, channels and times, frozen, as the program uses them."""

import datetime as dt
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase

from agent.domain.record.event_kind import EventKind
from agent.domain.work.run_times.run_window import WindowRule

CHANNELS = ("webhook", "apprise", "hook")


class Severity(IntEnum):
    """How much an event matters to a person."""

    INFO = 0
    NOTICE = 1
    WARNING = 2
    CRITICAL = 3


OF_EVENTS: tuple[tuple[str, Severity], ...] = (
    (EventKind.ORPHAN_SEEN, Severity.CRITICAL),
    (EventKind.DAEMON_REFUSED, Severity.CRITICAL),
    (EventKind.OPERATOR_HALTED, Severity.CRITICAL),
    (EventKind.ALERT_MARKET_FAULT, Severity.CRITICAL),
    (EventKind.ALERT_SECOND_DAEMON, Severity.CRITICAL),
    (EventKind.ALERT_REPLICA, Severity.CRITICAL),
    (EventKind.LEASE_INTERRUPTED, Severity.WARNING),
    (EventKind.LEASE_FAILED, Severity.WARNING),
    (EventKind.LEASE_GONE, Severity.WARNING),
    (EventKind.LEASE_MISSING, Severity.WARNING),
    (EventKind.LEASE_MISMATCHED, Severity.WARNING),
    (EventKind.LEASE_NOT_READY, Severity.WARNING),
    (EventKind.LEASE_UNHEALTHY, Severity.WARNING),
    (EventKind.LEASE_STALLED, Severity.WARNING),
    (EventKind.LEASE_REPRICED, Severity.WARNING),
    (EventKind.LEASE_MAINTENANCE, Severity.WARNING),
    (EventKind.INTENT_IN_DOUBT, Severity.WARNING),
    (EventKind.WORKLOAD_HELD, Severity.WARNING),
    (EventKind.WORKLOAD_FAILED_AT_ONCE, Severity.WARNING),
    (EventKind.WORKLOAD_TASK_FAILED, Severity.WARNING),
    (EventKind.PROGRESS_WENT_BACK, Severity.WARNING),
    ("deadline.*", Severity.WARNING),
    ("budget.*", Severity.WARNING),
    ("credit.*", Severity.WARNING),
    ("capability.*", Severity.WARNING),
    ("bill.*", Severity.WARNING),
    ("limit.*", Severity.WARNING),
    ("alert.*", Severity.WARNING),
    ("workload.*", Severity.NOTICE),
    ("window.*", Severity.NOTICE),
    ("operator.*", Severity.NOTICE),
    (EventKind.ENDPOINTS_CHANGED, Severity.NOTICE),
    (EventKind.LEASE_RUNNING, Severity.NOTICE),
    (EventKind.LEASE_RESUMED, Severity.NOTICE),
    ("lease.released*", Severity.NOTICE),
)
"""The first pattern that matches an event's kind gives its severity. A kind that matches none has INFO."""


OF_MONEY = (
    "budget.*", "credit.*", "bill.*", "limit.*", "orphan.*",
    "alert.credit_*", "alert.rate_*", "alert.price_rise", "alert.order_refused", "alert.not_as_rented",
    "alert.unlabelled_instance", "alert.wrong_instance", "alert.label_lost",
    "alert.idle", "alert.stalled", "alert.state_unknown", "alert.two_leases", "alert.unhealthy",
    EventKind.LEASE_REPRICED, EventKind.LEASE_MISMATCHED, EventKind.LEASE_LABEL_LOST, EventKind.LEASE_DISOWNED,
    EventKind.INTENT_IN_DOUBT,
)  # fmt: skip
"""Events by which more may be paid than is known, or for something that nobody uses. They wait for no quiet hours."""


def is_of_money(kind: str) -> bool:
    """Return whether an event of this kind is about money."""
    return any(fnmatchcase(kind, pattern) for pattern in OF_MONEY)


def severity_of(kind: str) -> Severity:
    """Return the severity of an event of this kind."""
    return next((level for pattern, level in OF_EVENTS if fnmatchcase(kind, pattern)), Severity.INFO)


@dataclass(frozen=True, slots=True)
class Rule:
    """Events to send, and the channels to send them to."""

    event: str = "*"
    """The kinds of events, as a shell pattern."""
    workload: str = "*"
    """The workloads, as a shell pattern."""
    severity: Severity = Severity.WARNING
    """The lowest severity to send."""
    channels: tuple[str, ...] = CHANNELS

    def fits(self, kind: str, workload: str) -> bool:
        """Return whether the rule sends this event."""
        return (
            severity_of(kind) >= self.severity
            and fnmatchcase(kind, self.event)
            and fnmatchcase(workload, self.workload)
        )


@dataclass(frozen=True, slots=True)
class Webhook:
    """A generic webhook."""

    url: str = ""
    """Its address; empty if a credential contains it."""
    url_credential: str = ""
    """The name of the credential with the address."""
    secret_credential: str = ""
    """The name of the key that signs messages; empty: they are not signed."""
    body: str = ""
    """The Jinja template of the body; empty: the message is JSON."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A command that is run for each event, without a shell, with the event as JSON on its standard input."""

    command: tuple[str, ...]
    """The program and its arguments."""
    deadline: dt.timedelta = dt.timedelta(seconds=10)
    """The command is killed after this time."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """Times in which messages of this severity and lower wait."""

    hours: WindowRule
    up_to: Severity = Severity.NOTICE


@dataclass(frozen=True, slots=True)
class Notify:
    """The settings of [notify]."""

    rules: tuple[Rule, ...] = (Rule(),)
    window: dt.timedelta = dt.timedelta(minutes=15)
    """Later events of an incident within this time are sent in one summary."""
    digest_at: dt.time | None = None
    """The time of the UTC day at which the digest is sent; None: there is no digest."""
    webhook: Webhook | None = None
    apprise: tuple[str, ...] = ()
    """The names of the credentials with Apprise addresses."""
    hook: Hook | None = None
    quiet: tuple[Quiet, ...] = ()

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels that are set up."""
        there = {"webhook": self.webhook is not None, "apprise": bool(self.apprise), "hook": self.hook is not None}
        return tuple(name for name in CHANNELS if there[name])

    @property
    def credentials(self) -> tuple[str, ...]:
        """The names of all credentials that the channels need."""
        mine = (self.webhook.url_credential, self.webhook.secret_credential) if self.webhook is not None else ()
        return tuple(name for name in (*mine, *self.apprise) if name)
