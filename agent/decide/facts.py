"""Facts since the last cycle, as values: reconcile finds them, the recorder writes them."""

from dataclasses import dataclass

from agent.decide.accounting.meter import Charge
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import Cause, Evidence
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.host_check import HostCheck
from agent.domain.record.intent import Intent, IntentState
from agent.domain.record.lease import Lease
from agent.domain.work.deadline import Progress, Speed


@dataclass(frozen=True, slots=True)
class LeaseChanged:
    """A lease has changed. `kind` is the event to record; without one the lease is only metered."""

    before: Lease
    after: Lease
    kind: EventKind | None
    charges: tuple[Charge, ...] = ()
    cause: Cause | None = None
    evidence: Evidence | None = None
    cooldown: Cooldown | None = None


@dataclass(frozen=True, slots=True)
class IntentSettled:
    """The end of a doubt: the market's own listing showed the intent done, or the grace passed without that."""

    intent: Intent
    state: IntentState
    outcome: str
    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class LeaseDisowned:
    """A lease never was ours: a reply named a foreign instance.

    The instance that was really rented is still to be found.

    `charges` count an instance that no look saw and that may have been ours.
    """

    lease: Lease
    sentence: str
    charges: tuple[Charge, ...] = ()


@dataclass(frozen=True, slots=True)
class InstanceFound:
    """An instance of ours without a lease; `verdict` is adopt, hold, wait, release or second_daemon."""

    instance: Instance
    verdict: str
    lease: Lease | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark on a slot or a workload: held, done, or one more failure. `kind` is the event's name, if any."""

    record: ExpiringRecord
    workload: str
    lease: Lease | None
    kind: EventKind | None
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """A message for a person."""

    kind: EventKind
    """The event to record."""
    key: str
    """Its subject. One kind and key is reported once."""
    sentence: str

    @property
    def code(self) -> str:
        """The kind without its noun."""
        return self.kind.partition(".")[2]


@dataclass(frozen=True, slots=True)
class ProgressReported:
    """A workload with a deadline reported its progress; `speed` follows from the last two reports of one lease."""

    after: Progress
    before: Progress | None
    speed: Speed | None = None


@dataclass(frozen=True, slots=True)
class GuardMeasured:
    """The guard of a lease reported figures that differ from the last."""

    after: GuardFigures
    before: GuardFigures | None
    notice: NoticeGiven | None = None
    """The notice of the loss before this stretch of running, when it is first reported."""


@dataclass(frozen=True, slots=True)
class HostChecked:
    """The guard of a lease measured its host for the first time, or found figures that differ from the last."""

    after: HostCheck


OfGuard = GuardMeasured | HostChecked
Fact = LeaseChanged | LeaseDisowned | IntentSettled | InstanceFound | Marked | Alert | ProgressReported | OfGuard
