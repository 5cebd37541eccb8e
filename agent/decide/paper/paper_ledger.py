"""The ledger of a paper position or a lab run, in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from agent.decide.accounting.meter import Charge
from agent.decide.facts import Fact, LeaseChanged, Marked, ProgressReported
from agent.decide.moves import recovery
from agent.decide.pricing import cooldowns
from agent.decide.reconcile.losses import outbid_evidence
from agent.domain.market.host import HostKey, HostRecord, exposed
from agent.domain.market.interruption import Loss
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord, outlasts
from agent.domain.record.hold import OperatorHold
from agent.domain.record.lease import Lease
from agent.domain.record.tally import Counted, Tally
from agent.domain.slot import Slot
from agent.domain.warm_time import WarmTime
from agent.domain.work.deadline import Progress, Speed, Start

R = TypeVar("R", OperatorHold, Cooldown, Tally)


@dataclass(slots=True)
class PaperLedger:
    """Open leases, cooldowns, host records, losses, progress, starts, and when and on which market slots were left."""

    leases: dict[str, Lease] = field(default_factory=dict)
    holds: dict[tuple[str, str], OperatorHold] = field(default_factory=dict)
    cooldowns: dict[tuple[str, str], Cooldown] = field(default_factory=dict)
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    hosts: dict[HostKey, HostRecord] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    vacated: dict[Slot, datetime] = field(default_factory=dict)
    left: dict[Slot, str] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)
    speeds: dict[tuple[str, str], Speed] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    warm: dict[str, WarmTime] = field(default_factory=dict)
    """How long services had enough warm slots, by workload."""
    ran_micros: dict[str, int] = field(default_factory=dict)
    """How long ended leases ran, by workload; those that ended before it began were real."""

    def put(self, lease: Lease) -> None:
        """Remember a lease, or forget an ended one. No label can be checked here: every lease is ours."""
        if lease.is_open:
            vouched = lease.vouched_at or lease.opened_at
            self.leases[lease.lease_id] = replace(lease, proven_at=vouched, vouched_at=vouched)
            return
        if self.leases.pop(lease.lease_id, None) is not None:
            name = lease.slot.workload
            self.ran_micros[name] = self.ran_micros.get(name, 0) + lease.ran_micros
        if lease.has_run and lease.ended_at is not None:
            self.vacated[lease.slot] = lease.ended_at
            self.left[lease.slot] = lease.market

    def open(self) -> tuple[Lease, ...]:
        """Return the open leases, the oldest first."""
        return tuple(sorted(self.leases.values(), key=lambda held: (held.opened_at, held.lease_id)))

    def mark(self, record: ExpiringRecord) -> None:
        """Remember a hold, cooldown or tally; a longer one is never shortened.

        Crossed budgets are not reported on paper.
        """
        if isinstance(record, OperatorHold):
            _keep_longer(self.holds, record)
        elif isinstance(record, Tally):
            _keep_longer(self.tallies, record)
        elif isinstance(record, Cooldown):
            _keep_longer(self.cooldowns, record)

    def forget_over(self, now: datetime) -> None:
        """Forget holds, cooldowns and tallies that are over."""
        self.holds = {key: record for key, record in self.holds.items() if not record.is_over(now)}
        self.cooldowns = {key: record for key, record in self.cooldowns.items() if not record.is_over(now)}
        self.tallies = {key: record for key, record in self.tallies.items() if not record.is_over(now)}

    def expose(self, held: Lease, now: datetime, more: HostRecord) -> None:
        """Add to the record of a lease's host."""
        known = self.hosts.get(held.host) or HostRecord(held.market, held.host_id, held.owner_id)
        self.hosts[held.host] = exposed(known, more, now)

    def learn(self, fact: Fact, now: datetime, image_gb: Mapping[str, float]) -> None:
        """Remember the facts; `image_gb` is the image of each workload, by name."""
        if isinstance(fact, Marked):
            self.mark(fact.record)
        if not isinstance(fact, LeaseChanged):
            return
        after = fact.after
        self.put(after)
        if fact.cooldown is not None:
            self.mark(fact.cooldown)
        if fact.kind == EventKind.LEASE_INTERRUPTED:
            self.losses.append(Loss(after.state_since, after.slot, after.market, after.host_id, fact.cause))
        if fact.kind == EventKind.LEASE_RUNNING:
            took = (after.state_since - after.opened_at).total_seconds()
            self.starts.append(Start(after.lease_id, after.market, after.state_since, max(took, 0.0)))
            until = now + cooldowns.RAN_COUNTS
            self.mark(Tally(Counted.RAN, str(after.slot), now, until, "ran", after.lease_id))
        self.meter(after, fact.charges, now)
        self._teach(fact, now, image_gb.get(after.slot.workload, 0.0))

    def meter(self, lease: Lease, charges: Sequence[Charge], now: datetime) -> None:
        """Add the time a lease ran to the record of its host."""
        ran = sum(charge.running_seconds for charge in charges)
        if ran:
            more = HostRecord(lease.market, lease.host_id, running_seconds=ran)
            if lease.tenure is Tenure.INTERRUPTIBLE:
                weighed = sum(charge.weighed_hours for charge in charges)
                more = msgspec.structs.replace(more, bid_seconds=ran, weighed_hours=weighed)
            self.expose(lease, now, more)

    def hear(self, reported: ProgressReported) -> None:
        """Remember the progress of a workload."""
        self.progress[reported.after.workload] = reported.after
        more = reported.speed
        if more is not None:
            known = self.speeds.get((more.workload, more.gpu)) or Speed(more.workload, more.gpu)
            hours, running = known.hours + more.hours, known.running_hours + more.running_hours
            self.speeds[more.workload, more.gpu] = Speed(more.workload, more.gpu, hours, running)

    def _teach(self, fact: LeaseChanged, now: datetime, image_gb: float) -> None:
        """Add the latest event to the record of the host."""
        after, is_loss, is_start = (
            fact.after,
            fact.kind == EventKind.LEASE_INTERRUPTED,
            fact.kind == EventKind.LEASE_RUNNING,
        )
        if not is_loss and not is_start:
            return
        # A start that was lost and came back says nothing about the speed of the image's pull.
        loaded_gb = image_gb if is_start and after.opened_at == fact.before.state_since else 0.0
        more = HostRecord(
            after.market,
            after.host_id,
            interruptions=float(is_loss),
            market_losses=float(is_loss and fact.cause in recovery.OF_THE_MARKET),
            displaced=float(outbid_evidence.is_displaced(fact)),
            outbids=outbid_evidence.winning_bid(fact),
            starts_ok=float(is_start),
            loaded_gb=loaded_gb,
            loading_seconds=max(0.0, (after.state_since - after.opened_at).total_seconds()) if loaded_gb else 0.0,
        )
        self.expose(after, now, more)


def _keep_longer(known: dict[tuple[str, str], R], record: R) -> None:
    before = known.get(record.place)
    if before is None or not outlasts(before, record):
        known[record.place] = record
