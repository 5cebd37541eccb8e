"""The fleet: everything known at one instant, with the age of each part.

Values that every slot looks up (leases of a slot, offers of a host) are arranged once, at the first look-up.

Each cycle makes several fleets and views. They are structs because a frozen dataclass with so many fields takes more
than ten times as long to make and to replace.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property

import msgspec

from agent.domain import open_starts
from agent.domain.front_report import FrontReport
from agent.domain.market.capacity import Capacity
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, HostRecord
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Loss, MarketEvent
from agent.domain.market.label import Label
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.market.market_rules import ASSUMED, MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import ZERO, Usd
from agent.domain.record.budget import Scope
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.hold import OperatorHold
from agent.domain.record.host_check import HostCheck
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.metered_volume import MeteredVolume
from agent.domain.record.reported_crossing import ReportedCrossing
from agent.domain.record.tally import Tally
from agent.domain.record.task_account import TaskAccount
from agent.domain.slot import Slot
from agent.domain.slot_demand import DemandReport, HandDemand
from agent.domain.warm_time import WarmTime
from agent.domain.work.carried_checkpoint import CheckpointProof
from agent.domain.work.deadline import Progress, Speed, Start
from agent.domain.work.guard_report import GuardReport
from agent.domain.work.ready_sign import ReadyWait, Sighting
from agent.domain.work.run_times.run_window import WindowNow
from agent.domain.work.stall import Quiet
from agent.domain.work.workload import Workload

MOST_SKEW_SECONDS = 60.0
"""If our clock and a market's differ by more, spend and evidence would be dated wrongly (rule 14)."""


class MarketView(msgspec.Struct, frozen=True, dict=True):
    """The view of one market."""

    market: str
    instances: tuple[Instance, ...] = ()
    """Its last complete listing."""
    labels: Mapping[str, Label] = {}
    """The labels in our format, of any fleet, by instance id."""
    listed_at: datetime | None = None
    """When the listing was read."""
    listed_monotonic: float = 0.0
    """The same instant in seconds that never go back."""
    is_fresh: bool = False
    """Whether the listing was read in this cycle."""
    listings: int = 0
    """The number of complete listings since the start."""
    absent_ids: frozenset[str] = frozenset()
    """Instances that the market declared non-existent by its own code in this cycle."""
    denied_ids: frozenset[str] = frozenset()
    """Instances that the market denied to a proven key in the last closer look that it answered, in this cycle or an
    earlier one, and that no listing has shown since."""
    is_key_proven: bool = False
    """Whether the key answered in this cycle."""
    is_record_read: bool = True
    """Whether the market's record of events was read. A market without such a record proves nothing by its silence."""
    trouble: str = ""
    """Why its last listing could not be read; empty if it was read."""
    no_spend_because: str = ""
    """Why nothing may be paid for there; empty if it may."""
    credit: Usd | None = None
    """The amount that the account can still spend, if the market reports it."""
    credit_before_fall: Usd | None = None
    """The credit before a sudden fall that further readings must confirm; None without one."""
    account_id: str = ""
    """The account of the key, if the market reports it."""
    clock_skew_seconds: float = 0.0
    """The market's clock less ours."""
    is_clock_read: bool = True
    """Whether the market's clock, if it reports its time, has been read since the start; before, ours may be days
    off."""
    events: tuple[MarketEvent, ...] = ()
    """The market's own record of our instances, as last read."""
    rises: tuple[MarketEvent, ...] = ()
    """Price increases that hosts have asked for."""
    notices: tuple[MarketEvent, ...] = ()
    """Maintenance that hosts have announced lately."""
    offers: tuple[Offer, ...] = ()
    """Offers that are not older than the snapshot allows."""
    answered: tuple[str, ...] = ()
    """The workloads, by name, whose searches it answered lately, with offers or with none."""
    sample: tuple[Offer, ...] = ()
    """The offers of the last wide search."""
    sampled_at: datetime | None = None
    """When that search was made."""
    sightings: Mapping[str, Sighting] = {}
    """The last results of probes, by instance id."""
    looks: Mapping[str, Label | None] = {}
    """The labels that looks by a single id showed in this cycle, by instance id; None: no label of ours."""
    looked_rows: Mapping[str, Instance] = {}
    """The rows that those looks showed, by instance id."""
    not_sold: Mapping[Tenure, str] = {}
    """The tenures that the account cannot rent there now, each with the reason."""
    rules: MarketRules = ASSUMED
    """What is different there from other markets."""
    looked_up: frozenset[str] = frozenset()
    """Instances that a look by their id showed in this cycle."""
    unlisted_ids: frozenset[str] = frozenset()
    """Those of `looked_up` that the listing lacks."""

    @property
    def is_skewed(self) -> bool:
        """Whether our clock and the market's are too far apart to believe either."""
        return abs(self.clock_skew_seconds) > MOST_SKEW_SECONDS

    @property
    def sells_nothing(self) -> bool:
        """Return whether the account can rent nothing there now, of no tenure that the market may sell."""
        sold = {Tenure.INTERRUPTIBLE, *([Tenure.ON_DEMAND] if self.rules.sells_on_demand else [])}
        return sold <= self.not_sold.keys()

    def instance(self, instance_id: str) -> Instance | None:
        """Return one row of the listing, or None if the listing lacks it."""
        return self._by_id.get(instance_id)

    def denies(self, instance_id: str) -> bool:
        """Return whether the market said by its own code, to a proven key, that there is no such instance."""
        return instance_id in self.absent_ids and self.is_key_proven and self.instance(instance_id) is None

    def hides_end(self, lease: Lease) -> bool:
        """Return whether a denial proves no end of a lease: its GPU bills as far as the ledger knows.

        Such a market shows the proof of an end in its listing before the instance leaves it, and the ledger has that.
        """
        is_billing = lease.bills is Bills.GPU_AND_DISK and lease.is_proven
        return self.rules.proves_ends_within is not None and is_billing

    @cached_property
    def _by_id(self) -> Mapping[str, Instance]:
        return {row.instance_id: row for row in self.instances}

    def offers_on(self, host_id: str) -> tuple[Offer, ...]:
        """Return the offers of one host, in the order of the view."""
        return tuple(self._by_host.get(host_id, ()))

    @cached_property
    def _by_host(self) -> Mapping[str, list[Offer]]:
        found: dict[str, list[Offer]] = {}
        for offer in self.offers:
            found.setdefault(offer.host_id, []).append(offer)
        return found


class Spend(msgspec.Struct, frozen=True):
    """The ledger's sums, in UTC days and months, and since it began."""

    today: Usd = ZERO
    month: Usd = ZERO
    total: Usd = ZERO

    def plus(self, other: "Spend") -> "Spend":
        """Return the sum of both."""
        return Spend(self.today + other.today, self.month + other.month, self.total + other.total)


class Fleet(msgspec.Struct, frozen=True, dict=True):
    """Everything known at one instant."""

    fleet_id: str
    """The random id in our labels."""
    now: datetime
    """The instant, in UTC."""
    monotonic: float
    """The same instant in seconds that never go back."""
    started_at: datetime
    """When this run of the program began."""
    workloads: tuple[Workload, ...]
    """The workloads, in the order of the configuration."""
    markets: Mapping[str, MarketView]
    """The view of each market, by name."""
    leases: tuple[Lease, ...] = ()
    """The open leases."""
    intents: tuple[Intent, ...] = ()
    """The open intents."""
    spend: Spend = Spend()
    """The ledger's count of all spend."""
    spend_of: Mapping[Scope, Spend] = {}
    """The ledger's count for every workload and market with spend."""
    volumes: Mapping[str, MeteredVolume] = {}
    """The network volumes that the ledger knows, by name."""
    holds: tuple[OperatorHold, ...] = ()
    """The holds: orders of operators to forbid or stop, and slots and workloads that wait for an operator."""
    cooldowns: tuple[Cooldown, ...] = ()
    """The cooldowns."""
    tallies: tuple[Tally, ...] = ()
    """The tallies."""
    reported_crossings: tuple[ReportedCrossing, ...] = ()
    """The thresholds of money whose crossing was reported."""
    past_leases: Mapping[str, Lease] = {}
    """The closed leases that a listing still names, by instance id."""
    past_intents: Mapping[str, Intent] = {}
    """The closed intents that a listing still names, by id."""
    hosts: Mapping[HostKey, HostRecord] = {}
    """Our own record of each host."""
    losses: tuple[Loss, ...] = ()
    """The interruptions of the last day, oldest first."""
    vacated: Mapping[Slot, datetime] = {}
    """When the last lease of a slot that had run ended."""
    left: Mapping[Slot, str] = {}
    """The market of that lease."""
    known_since: Mapping[str, datetime] = {}
    """Since when a workload, or a slot of one with fallback markets, by name, has been in the configuration, also
    before a restart."""
    unwanted_at: Mapping[Slot, datetime] = {}
    """When a slot of a workload with fallback markets was last meant to be empty, as far as this run saw."""
    tasks: Mapping[Slot, TaskAccount] = {}
    """What each slot has cost so far, and since when."""
    ran_micros: Mapping[str, int] = {}
    """How long the ended leases of a workload, by name, ran since they first were ready, in microseconds."""
    windows: Mapping[str, WindowNow] = {}
    """Where `now` is in the windows of each workload that has some, by name, as the edge computed it."""
    progress: Mapping[str, Progress] = {}
    """The last progress of workloads with a deadline, by name."""
    speeds: tuple[Speed, ...] = ()
    """The measured speeds of workloads with a deadline, by GPU model."""
    starts: tuple[Start, ...] = ()
    """The latest first starts of leases, oldest first."""
    typical: Mapping[tuple[GpuModel, int], float] = {}
    """The median DLPerf of a slice by model and GPUs, as last seen."""
    capacity: Mapping[str, Capacity] = {}
    """The evidence about interruptible capacity, by workload with a deadline."""
    guard_reports: Mapping[str, GuardReport] = {}
    """The last reports of guards, by the id of the intent that rented their lease."""
    orders_written: Mapping[str, datetime] = {}
    """When each order to a guard was written to its bucket, by the order's id; unknown before this run's start."""
    demand_reports: Mapping[str, DemandReport] = {}
    """What was last read of the demands of workloads, by name."""
    task_estimates: Mapping[str, Usd] = {}
    """What a task of an array costs at most by `gpubid estimate`, by workload; only while too few are done."""
    hand_demands: Mapping[str, HandDemand] = {}
    """The demands that a person gave by hand, by workload."""
    front_reports: Mapping[str, FrontReport] = {}
    """What proxies in front of services last said of the servers of leases, by lease id."""
    checkpoint_proofs: Mapping[str, CheckpointProof] = {}
    """The last comparisons of paused leases' checkpoints with their buckets, by the id of the rent's intent."""
    guard_figures: Mapping[str, GuardFigures] = {}
    """The figures that guards measured, by lease id, also of recent leases."""
    guard_notices: tuple[NoticeGiven, ...] = ()
    """The notices before losses to markets."""
    host_checks: Mapping[str, HostCheck] = {}
    """The checks of hosts by their guards, by lease id, also of recent leases."""
    poll: timedelta = timedelta(seconds=15)
    """The time between two polls of the markets."""
    unprobed: frozenset[str] = frozenset()
    """The ids of leases that were held when this pass began: nobody probed them."""
    warm: Mapping[str, WarmTime] = {}
    """How long services had enough warm slots, by workload."""
    warm_slots: Mapping[str, int] = {}
    """How many slots of a service with fallback markets its strategy keeps warm, by workload; the others are spare."""
    quiet: Mapping[str, Quiet] = {}
    """How long the work of leases has shown no progress, by lease id."""
    ready_waits: Mapping[str, ReadyWait] = {}
    """How long leases have been probed in vain for their sign of readiness, by lease id."""

    def workload(self, name: str) -> Workload | None:
        """Return the workload of that name, or None."""
        return self._by_name.get(name)

    def leases_of(self, slot: Slot) -> tuple[Lease, ...]:
        """Return the open leases of a slot, oldest first, without held ones."""
        return self._by_slot.get(slot, ())

    def occupants_of(self, slot: Slot) -> tuple[Lease, ...]:
        """Return the open leases on which a slot's work runs, may run, or waits, oldest first.

        Those that a slot no longer waits for are left out: they may stand beside the lease that replaced them.
        """
        return tuple(lease for lease in self.leases_of(slot) if not self.is_leaving(lease))

    def is_leaving(self, lease: Lease) -> bool:
        """Return whether a slot no longer waits for a release: the rest of it may take a person."""
        return lease.state is LeaseState.RELEASING and (lease.bills is Bills.NOTHING or self.is_called_over(lease))

    @property
    def is_clock_doubted(self) -> bool:
        """Whether the time of day is not known: a market's clock differs, or none has been read since the start."""
        views = self.markets.values()
        return any(view.is_skewed for view in views) or not any(view.is_clock_read for view in views)

    def is_seen(self, lease: Lease) -> bool:
        """Return whether the market of a lease was listed in this cycle; if not, only its last state is known."""
        view = self.markets.get(lease.market)
        return view is not None and view.is_fresh

    def is_listed_running(self, lease: Lease) -> bool:
        """Return whether its market lists a lease as running, which the ledger may not have been able to take."""
        view = self.markets.get(lease.market)
        row = view.instance(lease.instance_id) if view is not None else None
        return row is not None and row.state is InstanceState.RUNNING

    def is_listed_unclear(self, lease: Lease) -> bool:
        """Return whether its market lists a lease as unknown, or as failed, which one listing alone does not prove."""
        view = self.markets.get(lease.market)
        row = view.instance(lease.instance_id) if view is not None else None
        return row is not None and row.state in {InstanceState.UNKNOWN, InstanceState.FAILED}

    def is_called_over(self, lease: Lease) -> bool:
        """Return whether its market calls a lease over, or denies it, without a proof that it bills no more."""
        view = self.markets.get(lease.market)
        if view is None:
            return False
        row = view.instance(lease.instance_id)
        return row.is_called_over if row is not None else lease.instance_id in view.denied_ids and view.hides_end(lease)

    def rules_of(self, market: str) -> MarketRules:
        """Return the rules of a market, or the assumed ones if it is not configured."""
        view = self.markets.get(market)
        return ASSUMED if view is None else view.rules

    def paying_intent(self, slot: Slot) -> Intent | None:
        """Return the open intent of a slot that may raise spend, or None; it blocks the slot."""
        return self._paying.get(slot)

    def is_stopped(self, lease: Lease) -> bool:
        """Return whether a lease bills at most its disk and nothing may start it, no open start of ours either."""
        return open_starts.is_stopped(lease, self.intents, self.tallies)

    @cached_property
    def _by_name(self) -> Mapping[str, Workload]:
        return {workload.name: workload for workload in reversed(self.workloads)}

    @cached_property
    def _by_slot(self) -> Mapping[Slot, tuple[Lease, ...]]:
        found: dict[Slot, list[Lease]] = {}
        for lease in sorted(self.leases, key=lambda lease: (lease.opened_at, lease.lease_id)):
            if lease.is_open and not lease.is_held:
                found.setdefault(lease.slot, []).append(lease)
        return {slot: tuple(leases) for slot, leases in found.items()}

    @cached_property
    def _paying(self) -> Mapping[Slot, Intent]:
        found: dict[Slot, Intent] = {}
        for intent in self.intents:
            if intent.is_open and intent.kind.is_paying:
                found.setdefault(intent.slot, intent)
        return found
