"""The changes of a transaction. A read in the transaction sees them first; they enter the memory after the commit."""

import datetime as dt

import msgspec
from msgspec import field

from agent.domain.market.capacity import Capacity
from agent.domain.market.credit import Credit
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostRecord
from agent.domain.market.interruption import Loss
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.money import ZERO
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.host_check import HostCheck
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.record.metered_volume import MeteredVolume
from agent.domain.slot import Slot
from agent.domain.slot_demand import HandDemand
from agent.domain.warm_time import WarmTime
from agent.domain.work.deadline import Progress, Speed, Start
from agent.domain.work.sign_of_life import Absence, KeptSign, ShortStarts
from agent.ledger.memory import Memory
from agent.ledger.tables.price_history import Key, Pair
from agent.ledger.tables.spend_rows import SpendEntry


class Changes(msgspec.Struct):
    """The changes of one transaction. `memory` has the committed data. A change to None removes the record."""

    memory: Memory
    leases: dict[str, Lease] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    hosts: dict[tuple[str, str], HostRecord | None] = field(default_factory=dict)
    expiring: dict[tuple[str, str], ExpiringRecord | None] = field(default_factory=dict)
    capacity: dict[tuple[str, str], Capacity | None] = field(default_factory=dict)
    spend: list[SpendEntry] = field(default_factory=list)
    decisions: dict[Slot, tuple[object, ...]] = field(default_factory=dict)
    prices: dict[Key, Pair] = field(default_factory=dict)
    accounts: dict[str, str] = field(default_factory=dict)
    credits: dict[str, Credit] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    progress: dict[str, Progress] = field(default_factory=dict)
    speeds: dict[tuple[str, str], Speed] = field(default_factory=dict)
    counted_again: set[str] = field(default_factory=set)
    guard_runs: list[GuardRun] = field(default_factory=list)
    guard_figures: list[GuardFigures] = field(default_factory=list)
    guard_notices: list[NoticeGiven] = field(default_factory=list)
    host_checks: list[HostCheck] = field(default_factory=list)
    settles_loss: bool = False
    absence: Absence | None = None
    hand_demands: dict[str, HandDemand] = field(default_factory=dict)
    short_starts: ShortStarts | None = None
    volumes: dict[str, MeteredVolume] = field(default_factory=dict)
    signs: dict[tuple[str, str, str, str], KeptSign | None] = field(default_factory=dict)
    warm: dict[str, WarmTime] = field(default_factory=dict)
    dlperf: dict[tuple[GpuModel, int], float] = field(default_factory=dict)
    first_seen: dict[str, dt.datetime | None] = field(default_factory=dict)

    def lease(self, lease_id: str) -> Lease | None:
        """Return an open lease."""
        lease = self.leases.get(lease_id) or self.memory.leases.get(lease_id)
        return lease if lease is not None and lease.is_open else None

    def intent(self, intent_id: str) -> Intent | None:
        """Return an open intent."""
        intent = self.intents.get(intent_id) or self.memory.intents.get(intent_id)
        return intent if intent is not None and intent.is_open else None

    def open_intents(self) -> list[Intent]:
        """Return every open intent."""
        return [intent for intent in {**self.memory.intents, **self.intents}.values() if intent.is_open]

    def host(self, market: str, host_id: str) -> HostRecord:
        """Return our record of a host, or an empty one."""
        place = market, host_id
        known = self.hosts[place] if place in self.hosts else self.memory.hosts.get(market, {}).get(host_id)
        return known or HostRecord(market, host_id)

    def expiring_at(self, place: tuple[str, str]) -> ExpiringRecord | None:
        """Return a hold, cooldown, tally or reported threshold, by scope and key."""
        return self.expiring[place] if place in self.expiring else self.memory.expiring.get(place)

    def speed(self, workload: str, gpu: str) -> Speed | None:
        """Return the measured speed of a workload on a GPU model."""
        return self.speeds.get((workload, gpu)) or self.memory.speeds.get((workload, gpu))

    def price(self, key: Key) -> Pair | None:
        """Return the last price of a slice."""
        return self.prices.get(key) or self.memory.prices.get(key)

    def decision(self, slot: Slot) -> tuple[object, ...] | None:
        """Return the gist of a slot's last decision."""
        return self.decisions.get(slot) or self.memory.decisions.get(slot)

    def account(self, market: str) -> str | None:
        """Return the account of a market to which this ledger is bound."""
        return self.accounts.get(market) or self.memory.accounts.get(market)

    def credit(self, market: str) -> Credit | None:
        """Return a market's last recorded credit."""
        return self.credits.get(market) or self.memory.credits.get(market)

    def remember(self) -> None:
        """Apply the changes to the memory."""
        memory = self.memory
        self._remember_tasks()
        for lease in self.leases.values():
            memory.put_lease(lease)
        for intent in self.intents.values():
            memory.put_intent(intent)
        memory.put_hosts(self.hosts)
        for entry in self.spend:
            memory.pay(entry.day, (entry.workload, entry.market), entry.amount)
        for key, pair in self.prices.items():
            memory.put_price(key, pair)
        memory.put_expiring(self.expiring)
        memory.put_capacity(self.capacity)
        memory.accounts.update(self.accounts)
        memory.losses += self.losses
        memory.progress.update(self.progress)
        memory.speeds.update(self.speeds)
        for start in self.starts:
            memory.put_start(start)
        memory.credits.update(self.credits)
        memory.decisions.update(self.decisions)
        memory.put_runs(self.guard_runs)
        for figures in self.guard_figures:
            memory.put_guard_figures(figures)
        memory.put_notices(self.guard_notices)
        memory.put_host_checks(self.host_checks)
        memory.counted_again |= self.counted_again
        memory.was_lost = memory.was_lost and not self.settles_loss
        if self.absence is not None:
            memory.absent_until = self.absence.until
        memory.hand_demands = {**memory.hand_demands, **self.hand_demands} if self.hand_demands else memory.hand_demands
        memory.short_starts = self.short_starts or memory.short_starts
        memory.volumes = {**memory.volumes, **self.volumes} if self.volumes else memory.volumes
        memory.put_signs(self.signs)
        memory.warm = {**memory.warm, **self.warm} if self.warm else memory.warm
        memory.dlperf = {**memory.dlperf, **self.dlperf} if self.dlperf else memory.dlperf
        memory.put_first_seen(self.first_seen)
        memory.forget_made()

    def _remember_tasks(self) -> None:
        """Add the cost of leases to their slots. Once an ended lease is forgotten, its slot is not known any more."""
        for lease in self.leases.values():
            self.memory.put_task(lease.slot, lease.opened_at, ZERO)
        for entry in self.spend:
            payer = self.leases.get(entry.lease_id) or self.memory.leases.get(entry.lease_id)
            if payer is not None:
                self.memory.put_task(payer.slot, payer.opened_at, entry.amount)
