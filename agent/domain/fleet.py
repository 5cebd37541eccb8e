"""The fleet: everything known at one instant, with the age of each part.

What is looked up for every slot (leases of a slot, offers of a host) is arranged once, when it is first asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from agent.domain.market.capacity import Capacity
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, HostRecord
from agent.domain.market.instance import Instance
from agent.domain.market.interruption import Loss, MarketEvent
from agent.domain.market.label import Label
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import ZERO, Usd
from agent.domain.record.budget import Scope
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.hold import OperatorHold
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.record.tally import Tally
from agent.domain.record.told_crossing import ToldCrossing
from agent.domain.work.deadline import Progress, Speed, Start
from agent.domain.work.ready_sign import Sighting
from agent.domain.work.workload import Slot, Workload


@dataclass(frozen=True)
class MarketView:
    """The view of one market.

    `instances` is its last complete listing, read at `listed_at` (monotonic seconds in `listed_monotonic`);
    `is_fresh` tells whether that was in this cycle. `labels` are those of our making, of whatever fleet, by
    instance id. `listings` counts complete listings since the start. `absent_ids` are instances that it declared
    non-existent by its own code in this cycle; `is_key_proven` tells whether the key answered in it too, and
    `is_record_read` whether the market's record of events was read. `offers` are rows not older than the snapshot
    allows; `sample` is what the last wide question brought, at `sampled_at`. `clock_skew_seconds` is the market's
    clock less ours. `rises` are price increases that hosts have asked for. `trouble` is what kept its last reading
    from being one. `no_spend_because` says why nothing may be paid for there, and is empty when it may. `sightings`
    are what probes last saw, by instance id. `looks` are the labels (None: not one of ours) that looks by a single
    id showed in this cycle, by instance id, and `looked_rows` all that those looks showed. `not_sold` are the
    tenures that the account cannot rent there now, each with the reason. `looked_up` are instances that were asked
    for by their id in this cycle, and shown; `unlisted_ids` are those of them that the listing lacks.
    """

    market: str
    instances: tuple[Instance, ...] = ()
    labels: Mapping[str, Label] = field(default_factory=dict)
    listed_at: datetime | None = None
    listed_monotonic: float = 0.0
    is_fresh: bool = False
    listings: int = 0
    absent_ids: frozenset[str] = frozenset()
    is_key_proven: bool = False
    is_record_read: bool = True
    trouble: str = ""
    no_spend_because: str = ""
    credit: Usd | None = None
    account_id: str = ""
    clock_skew_seconds: float = 0.0
    events: tuple[MarketEvent, ...] = ()
    rises: tuple[MarketEvent, ...] = ()
    offers: tuple[Offer, ...] = ()
    sample: tuple[Offer, ...] = ()
    sampled_at: datetime | None = None
    sightings: Mapping[str, Sighting] = field(default_factory=dict)
    looks: Mapping[str, Label | None] = field(default_factory=dict)
    looked_rows: Mapping[str, Instance] = field(default_factory=dict)
    not_sold: Mapping[Tenure, str] = field(default_factory=dict)
    looked_up: frozenset[str] = frozenset()
    unlisted_ids: frozenset[str] = frozenset()

    def instance(self, instance_id: str) -> Instance | None:
        """Return one row of the listing, or None if the listing lacks it."""
        return self._by_id.get(instance_id)

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


@dataclass(frozen=True, slots=True)
class Spend:
    """The ledger's sums, in UTC days and months, and since it began."""

    today: Usd = ZERO
    month: Usd = ZERO
    total: Usd = ZERO

    def plus(self, other: "Spend") -> "Spend":
        """Return the sum of both."""
        return Spend(self.today + other.today, self.month + other.month, self.total + other.total)


@dataclass(frozen=True)
class Fleet:
    """Everything known at `now`; `monotonic` is the same instant in seconds that never go back.

    `past_leases` (by instance id) and `past_intents` (by id) are the closed ones that a listing still names. `losses`
    are the interruptions of the last day, oldest first; `vacated` is when the last lease of a slot that ever ran ended,
    and `left` the market that it was on;
    `known_since` is since when a workload, by name, has been in the configuration of this run.
    `progress` is what workloads with a deadline told last, by name; `speeds` is what was measured of them; `starts` are
    the last first starts, oldest first. `typical` is the median DLPerf of a slice by model and GPUs, as last seen.
    `holds` are what operators forbid or stop, `cooldowns` what rests for a while, `tallies` what was counted, `told`
    the thresholds of money that were told.
    `capacity` is what looking taught of interruptible capacity, by workload with a deadline.
    """

    fleet_id: str
    now: datetime
    monotonic: float
    started_at: datetime
    workloads: tuple[Workload, ...]
    markets: Mapping[str, MarketView]
    leases: tuple[Lease, ...] = ()
    intents: tuple[Intent, ...] = ()
    spend: Spend = Spend()
    spend_of: Mapping[Scope, Spend] = field(default_factory=dict)
    holds: tuple[OperatorHold, ...] = ()
    cooldowns: tuple[Cooldown, ...] = ()
    tallies: tuple[Tally, ...] = ()
    told: tuple[ToldCrossing, ...] = ()
    past_leases: Mapping[str, Lease] = field(default_factory=dict)
    past_intents: Mapping[str, Intent] = field(default_factory=dict)
    hosts: Mapping[HostKey, HostRecord] = field(default_factory=dict)
    losses: tuple[Loss, ...] = ()
    vacated: Mapping[Slot, datetime] = field(default_factory=dict)
    left: Mapping[Slot, str] = field(default_factory=dict)
    known_since: Mapping[str, datetime] = field(default_factory=dict)
    progress: Mapping[str, Progress] = field(default_factory=dict)
    speeds: tuple[Speed, ...] = ()
    starts: tuple[Start, ...] = ()
    typical: Mapping[tuple[GpuModel, int], float] = field(default_factory=dict)
    capacity: Mapping[str, Capacity] = field(default_factory=dict)

    def workload(self, name: str) -> Workload | None:
        """Return the workload of that name, or None."""
        return self._by_name.get(name)

    def leases_of(self, slot: Slot) -> tuple[Lease, ...]:
        """Return the open leases of a slot, oldest first, without held ones."""
        return self._by_slot.get(slot, ())

    def is_seen(self, lease: Lease) -> bool:
        """Return whether the market of a lease was listed in this cycle; else its last state is shown."""
        view = self.markets.get(lease.market)
        return view is not None and view.is_fresh

    def paying_intent(self, slot: Slot) -> Intent | None:
        """Return the open intent of a slot that may raise spend, or None; it blocks the slot."""
        return self._paying.get(slot)

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
