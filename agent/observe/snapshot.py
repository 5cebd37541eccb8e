"""Poll results and the ledger's memory -> one Fleet."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from agent.config.run_times import run_calendar
from agent.decide import first_sights
from agent.decide.accounting import task_costs
from agent.decide.deadline import availability, availability_by_market, deadline_progress
from agent.decide.moves import fallback_markets
from agent.decide.reconcile import unread_rows
from agent.decide.service import warm_record
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet, MarketView, Spend
from agent.domain.front_report import FrontReport
from agent.domain.market.gpu import GpuModel
from agent.domain.money import Usd
from agent.domain.record import budget
from agent.domain.record.budget import Scope
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.slot_demand import DemandReport
from agent.domain.work.carried_checkpoint import CheckpointProof
from agent.domain.work.guard_report import GuardReport
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.observe import short_labels


@dataclass(frozen=True, slots=True)
class Past:
    """Closed leases (by instance id) and intents (by id) that a listing still names."""

    leases: Mapping[str, Lease] = field(default_factory=dict)
    intents: Mapping[str, Intent] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Instant:
    """One instant on both clocks, the start of the program and of each workload, and observations of the market.

    `typical` is the usual speed of slices, `poll` the time between two polls.
    """

    now: datetime
    monotonic: float
    started_at: datetime
    poll: timedelta
    known_since: Mapping[str, datetime] = field(default_factory=dict)
    typical: Mapping[tuple[GpuModel, int], float] = field(default_factory=dict)
    guard_reports: Mapping[str, GuardReport] = field(default_factory=dict)
    orders_written: Mapping[str, datetime] = field(default_factory=dict)
    checkpoint_proofs: Mapping[str, CheckpointProof] = field(default_factory=dict)
    front_reports: Mapping[str, FrontReport] = field(default_factory=dict)
    demand_reports: Mapping[str, DemandReport] = field(default_factory=dict)
    task_estimates: Mapping[str, Usd] = field(default_factory=dict)
    unwanted_at: Mapping[Slot, datetime] = field(default_factory=dict)


def fleet(
    fleet_id: str,
    instant: Instant,
    workloads: Sequence[Workload],
    views: Iterable[MarketView],
    known: Recollection,
    past: Past,
) -> Fleet:
    """Return everything known at `instant` as one value."""
    asked = {**past.intents, **{intent.intent_id: intent for intent in known.intents}}
    markets = {view.market: _filled(view, known.leases, asked) for view in views}
    known_fleet = Fleet(
        fleet_id=fleet_id,
        now=instant.now,
        monotonic=instant.monotonic,
        started_at=instant.started_at,
        workloads=tuple(workloads),
        markets=markets,
        leases=known.leases,
        intents=known.intents,
        spend=known.total,
        spend_of=renamed(known.spend_of, workloads),
        holds=known.holds,
        cooldowns=known.cooldowns,
        tallies=known.tallies,
        reported_crossings=known.reported_crossings,
        hosts={record.key: record for market in markets for record in known.hosts_on(market).values()},
        past_leases=past.leases,
        past_intents=past.intents,
        losses=known.losses,
        vacated=known.vacated,
        left=known.left,
        ran_micros=known.ran_micros,
        windows={work.name: run_calendar.now(work.windows, instant.now) for work in workloads if work.windows},
        progress=known.progress,
        speeds=known.speeds,
        starts=known.starts,
        known_since=first_sights.of(workloads, known.first_seen, instant.known_since),
        typical={**known.dlperf, **instant.typical},
        guard_reports=instant.guard_reports,
        orders_written=instant.orders_written,
        checkpoint_proofs=instant.checkpoint_proofs,
        front_reports=instant.front_reports,
        demand_reports=instant.demand_reports,
        guard_figures=known.guard_figures,
        guard_notices=known.guard_notices,
        host_checks=known.host_checks,
        poll=instant.poll,
    )
    return _with_history(known_fleet, known, instant)


def _with_history(known_fleet: Fleet, known: Recollection, instant: Instant) -> Fleet:
    by_pool = availability.by_workload(known.capacity, known_fleet)
    seen = by_pool | availability_by_market.by_workload(known.capacity, known_fleet)
    tasks = task_costs.renamed(known.tasks, known_fleet.workloads)
    of_slots = {"tasks": tasks, "task_estimates": instant.task_estimates, "unwanted_at": instant.unwanted_at}
    return msgspec.structs.replace(
        known_fleet,
        capacity=seen,
        volumes=known.volumes,
        warm=warm_record.renamed(known.warm, known_fleet.workloads),
        hand_demands=known.hand_demands,
        **of_slots,
    )


def enriched(fleet: Fleet, tuned: Mapping[str, Tuned]) -> Fleet:
    """Return a fleet with the speed of slices, the capacity and the warm time that its offers and leases show."""
    fleet = fallback_markets.with_warm_slots(fleet, tuned)
    closed = {work.name: fallback_markets.closed(fleet, work) for work in fleet.workloads}
    by_pool = availability.watched(fleet.capacity, fleet, closed)
    seen = by_pool | availability_by_market.watched(fleet.capacity, fleet)
    typical = deadline_progress.typical(fleet.typical, fleet)
    warm = warm_record.watched(fleet.warm, fleet, warm_record.needed_by(tuned))
    return msgspec.structs.replace(fleet, typical=typical, capacity=seen, warm=warm)


def _filled(view: MarketView, leases: Sequence[Lease], intents: Mapping[str, Intent]) -> MarketView:
    """Return a view with our own records in the place of what the market does not say: workloads of labels, fields."""
    return unread_rows.filled(short_labels.completed(view, intents), leases, intents)


def renamed(spend_of: Mapping[Scope, Spend], workloads: Iterable[Workload]) -> Mapping[Scope, Spend]:
    """Return spend by scope, with a workload's spend under its old name counted as its own."""
    spend = dict(spend_of)
    for work in workloads:
        old, new = budget.of_workload(work.was), budget.of_workload(work.name)
        if work.was and old in spend:
            spend[new] = spend.get(new, Spend()).plus(spend[old])
    return spend


def unexplained_ids(views: Iterable[MarketView], fleet_id: str, known: Recollection) -> tuple[set[str], set[str]]:
    """Return (instance ids, intent ids) that no open lease explains: their history must be read.

    Instances without our label are among them, since one that we rented once may carry another label now.
    """
    known_ids = {lease.instance_id for lease in known.leases}
    instances: set[str] = set()
    intents: set[str] = set()
    for view in views:
        instances |= {row.instance_id for row in view.instances if row.instance_id not in known_ids}
        ours = (label for at, label in view.labels.items() if at in instances and label.fleet_id == fleet_id)
        intents |= {label.intent_id for label in ours}
    return instances, intents
