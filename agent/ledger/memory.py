"""The ledger's memory: filled from SQL once, then updated by the transactions that change it."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.domain.fleet import Spend
from agent.domain.market.capacity import Capacity
from agent.domain.market.credit import Credit
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostRecord
from agent.domain.market.interruption import Loss
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.money import ZERO, Usd
from agent.domain.record import budget
from agent.domain.record.budget import Kind, Scope
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.hold import OperatorHold
from agent.domain.record.host_check import HostCheck
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.record.metered_volume import MeteredVolume
from agent.domain.record.reported_crossing import ReportedCrossing
from agent.domain.record.tally import Tally
from agent.domain.record.task_account import TaskAccount
from agent.domain.slot import Slot
from agent.domain.slot_demand import HandDemand
from agent.domain.warm_time import WarmTime
from agent.domain.work.deadline import Progress, Speed, Start
from agent.domain.work.sign_of_life import KeptSign, ShortStarts
from agent.ledger.tables.guard_rows import MOST_CHECKS, MOST_GUARD_FIGURES, MOST_NOTICES
from agent.ledger.tables.price_history import Key, Pair
from agent.ledger.tables.progress_rows import MOST_STARTS
from agent.ledger.tables.types import EPOCH

_PRICE_KEYS = 20_000
"""The most last prices in memory. A day's quota has fewer rows than that, so the bound is only for safety."""

STARTS_KEPT = dt.timedelta(days=30)
"""Older starts show little about how long a start takes now."""
LOSSES_KEPT = dt.timedelta(days=1)
"""How far back interruptions are remembered, which is as far as any strategy looks."""


Payer = tuple[str, str]
"""The workload and the market that an amount was spent on."""


@dataclass(frozen=True, slots=True)
class Recollection:
    """The ledger at one instant."""

    leases: tuple[Lease, ...]
    """The open leases, oldest first."""
    intents: tuple[Intent, ...]
    """The open intents, oldest first."""
    spend: Mapping[str, Spend]
    """Spend by workload; a workload without spend this month is missing."""
    total: Spend
    """All spend."""
    holds: tuple[OperatorHold, ...]
    """The holds that are in force."""
    cooldowns: tuple[Cooldown, ...]
    """The cooldowns that are not over."""
    tallies: tuple[Tally, ...]
    """The tallies that still count."""
    reported_crossings: tuple[ReportedCrossing, ...]
    """The thresholds of money that were reported in their window."""
    hosts: Mapping[str, Mapping[str, HostRecord]]
    """Our own record of hosts, by market, then by host."""
    accounts: Mapping[str, str]
    """The account that the ledger belongs to, by market."""
    losses: tuple[Loss, ...] = ()
    """The interruptions of the last day."""
    vacated: Mapping[Slot, dt.datetime] = field(default_factory=dict)
    """When the last lease of a slot that had run ended."""
    left: Mapping[Slot, str] = field(default_factory=dict)
    """The market of that lease."""
    ran_micros: Mapping[str, int] = field(default_factory=dict)
    """The running time of a workload's ended leases, by workload, in microseconds; each counts since it was ready."""
    tasks: Mapping[Slot, TaskAccount] = field(default_factory=dict)
    """What each slot has cost so far, and since when."""
    progress: Mapping[str, Progress] = field(default_factory=dict)
    """The last progress of workloads with a deadline, by name."""
    speeds: tuple[Speed, ...] = ()
    """The measured speeds of workloads with a deadline, by GPU model."""
    starts: tuple[Start, ...] = ()
    """The latest first starts of leases."""
    volumes: Mapping[str, MeteredVolume] = field(default_factory=dict)
    """The network volumes that were ever priced, by name."""
    spend_of: Mapping[Scope, Spend] = field(default_factory=dict)
    """Spend of every workload and market that ever spent."""
    credits: Mapping[str, Credit] = field(default_factory=dict)
    """The last reported credit of each market's account, and its time."""
    capacity: tuple[Capacity, ...] = ()
    """The known capacity of each pool."""
    guard_runs: tuple[GuardRun, ...] = ()
    """Every run of every slot with a guard, in the order in which they began."""
    guard_figures: Mapping[str, GuardFigures] = field(default_factory=dict)
    """The figures that guards measured, by lease id, of recent leases."""
    guard_notices: tuple[NoticeGiven, ...] = ()
    """The latest notices before losses."""
    host_checks: Mapping[str, HostCheck] = field(default_factory=dict)
    """The checks of hosts by their guards, by lease id, of recent leases."""
    absent_until: dt.datetime | None = None
    """The end of the absence that a person announced for the daemon; None: none is announced."""
    hand_demands: Mapping[str, HandDemand] = field(default_factory=dict)
    """The demands that a person gave by hand, by workload, also those that are over."""
    signs: tuple[KeptSign, ...] = ()
    """The last sign of life of each folder that containers read."""
    warm: Mapping[str, WarmTime] = field(default_factory=dict)
    """How long services had enough warm slots, by workload."""
    dlperf: Mapping[tuple[GpuModel, int], float] = field(default_factory=dict)
    """The last DLPerf of slices on which deadlines count their hours, by model and number of GPUs."""
    first_seen: Mapping[str, dt.datetime] = field(default_factory=dict)
    """When a configuration first had a workload that it still has, by name."""

    @property
    def expiring(self) -> tuple[ExpiringRecord, ...]:
        """Holds, cooldowns, tallies and reported thresholds together, in the order of their places."""
        found: tuple[ExpiringRecord, ...] = (*self.holds, *self.cooldowns, *self.tallies, *self.reported_crossings)
        return tuple(sorted(found, key=lambda record: record.place))

    def hosts_on(self, market: str) -> Mapping[str, HostRecord]:
        """Return our record of the hosts of one market, by host id."""
        return self.hosts.get(market, {})


@dataclass(slots=True)
class Memory:
    """The data behind every recollection; only committed facts enter it."""

    leases: dict[str, Lease] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    days: dict[dt.date, dict[Payer, Usd]] = field(default_factory=dict)
    months: dict[tuple[int, int], dict[Payer, Usd]] = field(default_factory=dict)
    totals: dict[Payer, Usd] = field(default_factory=dict)
    expiring: dict[tuple[str, str], ExpiringRecord] = field(default_factory=dict)
    hosts: dict[str, dict[str, HostRecord]] = field(default_factory=dict)
    accounts: dict[str, str] = field(default_factory=dict)
    credits: dict[str, Credit] = field(default_factory=dict)
    decisions: dict[Slot, tuple[object, ...]] = field(default_factory=dict)
    prices: dict[Key, Pair] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    vacated: dict[Slot, dt.datetime] = field(default_factory=dict)
    left: dict[Slot, str] = field(default_factory=dict)
    ran_micros: dict[str, int] = field(default_factory=dict)
    tasks: dict[Slot, TaskAccount] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)
    speeds: dict[tuple[str, str], Speed] = field(default_factory=dict)
    starts: dict[str, Start] = field(default_factory=dict)
    capacity: dict[tuple[str, str], Capacity] = field(default_factory=dict)
    guard_runs: list[GuardRun] = field(default_factory=list)
    guard_figures: dict[str, GuardFigures] = field(default_factory=dict)
    guard_notices: tuple[NoticeGiven, ...] = ()
    host_checks: dict[str, HostCheck] = field(default_factory=dict)
    was_lost: bool = False
    has_lost_runs: bool = False
    short_starts: ShortStarts = field(default_factory=ShortStarts)
    absent_until: dt.datetime | None = None
    hand_demands: Mapping[str, HandDemand] = field(default_factory=dict)
    signs: dict[tuple[str, str, str, str], KeptSign] = field(default_factory=dict)
    counted_again: set[str] = field(default_factory=set)
    volumes: Mapping[str, MeteredVolume] = field(default_factory=dict)
    warm: Mapping[str, WarmTime] = field(default_factory=dict)
    dlperf: Mapping[tuple[GpuModel, int], float] = field(default_factory=dict)
    first_seen: Mapping[str, dt.datetime] = field(default_factory=dict)
    _made: Recollection | None = None
    _made_from: dt.datetime = EPOCH
    _made_until: dt.datetime = EPOCH

    def holds_as(self, other: "Memory") -> bool:
        """Return whether both memories have the same leases, intents, spend, and holds, cooldowns and tallies."""
        mine = self.leases, self.intents, self.totals, self.expiring
        return mine == (other.leases, other.intents, other.totals, other.expiring)

    def forget_made(self) -> None:
        """Forget the last recollection, so that the next one is made again."""
        self._made = None

    def forget_old(self, now: dt.datetime) -> None:
        """Forget records that are over or too old, and all last prices, whose samples may be deleted."""
        self.losses, self.starts = self._recent_losses(now), self._recent_starts(now)
        self.expiring = {place: record for place, record in self.expiring.items() if not record.is_over(now)}
        self.prices.clear()

    def recollection(self, now: dt.datetime) -> Recollection:
        """Return the recollection at `now`, the same object while neither the ledger nor the date changed."""
        if self._made is None or not self._made_from <= now < self._made_until:
            self._made = self._make(now)
        return self._made

    def put_lease(self, lease: Lease) -> None:
        """Remember a lease; an ended one is forgotten."""
        if lease.is_open:
            self.leases[lease.lease_id] = lease
        else:
            self.leases.pop(lease.lease_id, None)
            self.put_ran(lease.slot.workload, lease.ran_micros)
            if lease.has_run and lease.ended_at is not None:
                self.put_vacated(lease.slot, lease.ended_at, lease.market)

    def put_ran(self, workload: str, micros: int) -> None:
        """Add the running time of an ended lease."""
        self.ran_micros[workload] = self.ran_micros.get(workload, 0) + micros

    def put_task(self, place: Slot, began_at: dt.datetime, spent: Usd) -> None:
        """Add to what a slot has cost; `began_at` is when the lease was rented that cost it."""
        known = self.tasks.get(place) or TaskAccount(began_at)
        self.tasks[place] = TaskAccount(min(known.began_at, began_at), known.spent + spent)

    def put_vacated(self, place: Slot, at: dt.datetime, market: str) -> None:
        """Remember when and on which market the last lease of a slot ended."""
        if at >= self.vacated.get(place, at):
            self.vacated[place], self.left[place] = at, market

    def put_intent(self, intent: Intent) -> None:
        """Remember an intent; a resolved one is forgotten."""
        if intent.is_open:
            self.intents[intent.intent_id] = intent
        else:
            self.intents.pop(intent.intent_id, None)

    def put_hosts(self, changed: Mapping[tuple[str, str], HostRecord | None]) -> None:
        """Remember hosts, and forget those that are None; mappings are copied because recollections share them."""
        for market in {market for market, _ in changed}:
            mine = {host_id: record for (where, host_id), record in changed.items() if where == market}
            merged = {**self.hosts.get(market, {}), **mine}
            self.hosts[market] = {host_id: record for host_id, record in merged.items() if record is not None}
        self.hosts = {market: records for market, records in self.hosts.items() if records}

    def put_expiring(self, changed: Mapping[tuple[str, str], ExpiringRecord | None]) -> None:
        """Remember holds, cooldowns and tallies, and forget those that are None, which were lifted."""
        merged = {**self.expiring, **changed}
        self.expiring = {place: record for place, record in merged.items() if record is not None}

    def pay(self, day: dt.date, payer: Payer, amount: Usd) -> None:
        """Count spend in its day, its month and in total."""
        self.add_spend(day, payer, amount)
        self.totals[payer] = self.totals.get(payer, ZERO) + amount

    def put_start(self, start: Start) -> None:
        """Remember the time of a first start. A later start of the same lease says nothing about loading."""
        if start.lease_id in self.starts:
            return
        self.starts[start.lease_id] = start
        while len(self.starts) > MOST_STARTS:
            self.starts.pop(next(iter(self.starts)))

    def put_runs(self, runs: Sequence[GuardRun]) -> None:
        """Add runs in place of those of the same slot and number; most commits have none, and the known are many."""
        if runs:
            taken = {(run.slot, run.run) for run in runs}
            others = [run for run in self.guard_runs if (run.slot, run.run) not in taken]
            self.guard_runs = [*others, *runs]

    def put_guard_figures(self, figures: GuardFigures) -> None:
        """Remember a guard's figures: of every open lease, and of the ended ones that reported last."""
        # A new mapping, because recollections share the old one. The last to report is the last to be forgotten.
        self.guard_figures = {key: one for key, one in self.guard_figures.items() if key != figures.lease_id}
        self.guard_figures[figures.lease_id] = figures
        # If the figures of an open lease were forgotten, every pass would record them again (rule 17).
        for lease_id in [key for key in self.guard_figures if key not in self.leases][:-MOST_GUARD_FIGURES]:
            del self.guard_figures[lease_id]

    def put_notices(self, given: Iterable[NoticeGiven]) -> None:
        """Remember the latest notices before losses."""
        self.guard_notices = (*self.guard_notices, *given)[-MOST_NOTICES:]

    def put_host_checks(self, checks: Iterable[HostCheck]) -> None:
        """Remember checks of hosts: of every open lease, and of the ended ones that were checked last."""
        new = {each.lease_id: each for each in checks}
        if not new:
            return
        kept = {key: one for key, one in self.host_checks.items() if key not in new} | new
        surplus = [key for key in kept if key not in self.leases][:-MOST_CHECKS]
        self.host_checks = {key: one for key, one in kept.items() if key not in surplus}

    def put_capacity(self, changed: Mapping[tuple[str, str], Capacity | None]) -> None:
        """Remember pools, and forget those that are None."""
        merged = {**self.capacity, **changed}
        self.capacity = {place: known for place, known in merged.items() if known is not None}

    def put_signs(self, changed: Mapping[tuple[str, str, str, str], KeptSign | None]) -> None:
        """Remember signs of life, and forget those that are None."""
        merged = {**self.signs, **changed}
        self.signs = {key: sign for key, sign in merged.items() if sign is not None}

    def put_first_seen(self, changed: Mapping[str, dt.datetime | None]) -> None:
        """Remember when workloads came, and forget those that are None."""
        merged = {**self.first_seen, **changed}
        self.first_seen = {name: at for name, at in merged.items() if at is not None}

    def put_price(self, key: Key, pair: Pair) -> None:
        """Remember the last price of a slice."""
        if len(self.prices) >= _PRICE_KEYS and key not in self.prices:
            self.prices.pop(next(iter(self.prices)))
        self.prices[key] = pair

    def add_spend(self, day: dt.date, payer: Payer, amount: Usd) -> None:
        """Count spend in its day and its month; the caller counts `totals`."""
        for sums in (self.days.setdefault(day, {}), self.months.setdefault((day.year, day.month), {})):
            sums[payer] = sums.get(payer, ZERO) + amount

    def _spend_of(self, now: dt.datetime) -> dict[Payer, Spend]:
        today = self.days.get(now.date(), {})
        month = self.months.get((now.year, now.month), {})
        payers = sorted({*today, *month, *self.totals})
        return {
            payer: Spend(today.get(payer, ZERO), month.get(payer, ZERO), self.totals.get(payer, ZERO))
            for payer in payers
        }

    def _make(self, now: dt.datetime) -> Recollection:
        midnight = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        records = [record for _, record in sorted(self.expiring.items()) if not record.is_over(now)]
        losses = sorted(self._recent_losses(now), key=lambda loss: loss.at)
        starts = self._recent_starts(now)
        self._made_from, self._made_until = now, _end(midnight, records, losses, starts.values())
        payers = self._spend_of(midnight)
        spent = _summed(payers)
        return Recollection(
            leases=tuple(sorted(self.leases.values(), key=lambda lease: (lease.opened_at, lease.lease_id))),
            intents=tuple(sorted(self.intents.values(), key=lambda intent: (intent.recorded_at, intent.intent_id))),
            spend={
                scope.name: one
                for scope, one in spent.items()
                if scope.kind is Kind.WORKLOAD and self._is_of_month(scope.name, midnight)
            },
            total=_total(payers.values()),
            holds=tuple(record for record in records if isinstance(record, OperatorHold)),
            cooldowns=tuple(record for record in records if isinstance(record, Cooldown)),
            tallies=tuple(record for record in records if isinstance(record, Tally)),
            reported_crossings=tuple(record for record in records if isinstance(record, ReportedCrossing)),
            hosts=dict(self.hosts),
            accounts=dict(self.accounts),
            losses=tuple(losses),
            vacated=dict(self.vacated),
            left=dict(self.left),
            ran_micros=dict(self.ran_micros),
            tasks=dict(self.tasks),
            progress=dict(self.progress),
            speeds=tuple(self.speeds[key] for key in sorted(self.speeds)),
            starts=tuple(starts.values()),
            volumes=self.volumes,
            spend_of=spent,
            credits=dict(self.credits),
            capacity=tuple(self.capacity[key] for key in sorted(self.capacity)),
            guard_runs=tuple(self.guard_runs),
            guard_figures=self.guard_figures,
            guard_notices=self.guard_notices,
            host_checks=self.host_checks,
            absent_until=self.absent_until,
            hand_demands=self.hand_demands,
            signs=tuple(self.signs[key] for key in sorted(self.signs)),
            warm=self.warm,
            dlperf=self.dlperf,
            first_seen=self.first_seen,
        )

    def _recent_losses(self, now: dt.datetime) -> list[Loss]:
        return [loss for loss in self.losses if loss.at >= now - LOSSES_KEPT]

    def _recent_starts(self, now: dt.datetime) -> dict[str, Start]:
        return {key: start for key, start in self.starts.items() if start.at >= now - STARTS_KEPT}

    def _is_of_month(self, workload: str, now: dt.datetime) -> bool:
        return any(name == workload for name, _ in self.months.get((now.year, now.month), {}))


def _end(
    midnight: dt.datetime, records: Iterable[ExpiringRecord], losses: Sequence[Loss], starts: Iterable[Start]
) -> dt.datetime:
    """Return when a recollection is out of date: at the next midnight, or once a part of it is over or forgotten."""
    forgotten = [loss.at + LOSSES_KEPT + dt.timedelta.resolution for loss in losses[:1]]
    forgotten += [start.at + STARTS_KEPT + dt.timedelta.resolution for start in starts]
    ends = [record.until for record in records if record.until is not None]
    return min([midnight + dt.timedelta(days=1), *forgotten, *ends])


def _summed(payers: Mapping[Payer, Spend]) -> dict[Scope, Spend]:
    """Return spend of each workload and each market."""
    found: dict[Scope, Spend] = {}
    for (workload, market), one in payers.items():
        for scope in (budget.of_workload(workload), budget.of_market(market)):
            found[scope] = found.get(scope, Spend()).plus(one)
    return found


def _total(spends: Iterable[Spend]) -> Spend:
    whole = Spend()
    for one in spends:
        whole = whole.plus(one)
    return whole
