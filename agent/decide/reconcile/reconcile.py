"""Market listing x leases x open intents -> facts.

Invariants:
1. A view that is not fresh yields nothing: ignorance is never an interruption.
2. A loss needs two looks: the first makes a suspicion, the second a fact. The suspicion is kept until the ledger has
   the loss, so that an unrecorded fact, as in a cycle that looks twice, is found again (rule 19). If the market leaves
   a look without an answer, the lease is asked for by its id again, for at most `ANSWER_WITHIN`.
3. A lease is gone only when the market denies it by its own code with a proven key, and complete listings at least
   `GONE_AFTER` apart lack it. Several leases that vanish at once are a fault of the market.
4. An unchanged world yields no fact but the periodic metering.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from agent.decide.facts import Fact, LeaseChanged, LeaseDisowned
from agent.decide.reconcile import (
    absence,
    agreed_rate,
    billed_times,
    doubt,
    doubted_terms,
    groundless_releases,
    host_maintenance,
    market_alerts,
    orphans,
    ownership,
    readback,
    row_metering,
    unseen_stops,
    waiting_verdict,
    workload_end,
)
from agent.decide.reconcile.guards import (
    acceptance_verdict,
    guard_refusal,
    guard_silence,
    guard_switch,
    unfinished_uploads,
)
from agent.decide.reconcile.losses import cause, failed_start, interruption_notice, loss_cooldown, own_pause
from agent.decide.reconcile.pass_memory import ListingMarks, Memory, Suspicion, TermDoubt
from agent.decide.reconcile.probes import idleness, kept_pairs, liveness, readiness, ready_waits, stalls
from agent.decide.run_times import running_limits
from agent.domain import money
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState

METER_EVERY = timedelta(minutes=5)
"""How often a lease is metered, so that a crash leaves little to count again from the listing."""
SAME_END = timedelta(minutes=1)
"""An end date of a host that differs by more than this is updated at once: a move may depend on it."""
ANSWER_WITHIN = timedelta(minutes=3)
"""So long a suspicion waits for a look by id: one answer forbids looks for at most a minute (rule 20). After it,
listings alone are believed."""
METER_TRAFFIC = money.usd("0.002")
"""Traffic that costs this much is metered at once: an image is pulled within minutes and may cost an hour's rent."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Facts, the memory for the next cycle, leases that need a second look, and markets at fault.

    `to_look` are instances that need a look by id at their label before anything may be written to them.
    """

    facts: tuple[Fact, ...]
    memory: Memory
    suspects: frozenset[str] = frozenset()
    to_probe: frozenset[str] = frozenset()
    faulty: frozenset[str] = frozenset()
    to_look: frozenset[ownership.Place] = frozenset()


@dataclass(frozen=True, slots=True)
class _Present:
    """The facts of the leases that a listing has, and by lease the suspicions and the doubted terms."""

    facts: tuple[Fact, ...]
    suspicions: dict[str, Suspicion]
    term_doubts: dict[str, Mapping[str, TermDoubt]]


def reconcile(fleet: Fleet, memory: Memory) -> Reconciliation:
    """Return the facts in the fresh listings of `fleet`."""
    owned = host_maintenance.announced(fleet, orphans.decided(fleet, ownership.settle(fleet, memory)))
    unprobed = frozenset(lease.lease_id for lease in fleet.leases if lease.is_held)
    fleet = msgspec.structs.replace(fleet, leases=owned.leases, unprobed=unprobed)
    waits = ready_waits.counted(fleet, memory.ready_waits)
    fleet = msgspec.structs.replace(fleet, quiet=stalls.counted(fleet, memory.quiet), ready_waits=waits)
    kept = replace(memory, label_looks=owned.looks, quiet=fleet.quiet, ready_waits=waits)
    result = Reconciliation(owned.facts, kept, to_look=owned.to_look)
    for name in sorted(fleet.markets):
        view = fleet.markets[name]
        if view.is_fresh and view.listed_at is not None:
            result = _market(fleet, view, view.listed_at, owned.undecided, result)
        else:
            silent = {lease.lease_id for lease in fleet.leases if lease.market == name}
            result = replace(result, memory=result.memory.unanswered(silent))
    alerts = (
        *idleness.alerts(fleet),
        *running_limits.alerts(fleet),
        *liveness.alerts(fleet),
        *stalls.alerts(fleet),
        *kept_pairs.alerts(fleet),
        *guard_silence.alerts(fleet),
        *unfinished_uploads.alerts(fleet),
        *acceptance_verdict.alerts(fleet),
        *market_alerts.alerts(fleet),
        *agreed_rate.alerts(fleet),
        *doubted_terms.alerts(fleet),
    )
    return replace(result, facts=result.facts + workload_end.marks(fleet, unseen_stops.latest(result.facts)) + alerts)


def _market(
    fleet: Fleet, view: MarketView, listed_at: datetime, undecided: frozenset[str], so_far: Reconciliation
) -> Reconciliation:
    """Return what is known so far with the facts of one fresh listing added."""
    memory = so_far.memory
    open_leases = [lease for lease in fleet.leases if lease.market == view.market and lease.is_open]
    others = {lease.lease_id for lease in fleet.leases if lease.market != view.market}
    listed = {row.instance_id for row in view.instances}
    lacking = [lease for lease in open_leases if lease.instance_id not in listed]
    shown = [lease for lease in open_leases if lease.instance_id in listed and lease.lease_id not in undecided]
    present = _present_leases(fleet, view, listed_at, memory, shown)
    absent_facts, absences, is_faulty = absence.find(fleet, view, memory, lacking)
    settled, doubts = doubt.settle(fleet, view, memory)
    disowned = tuple(fact for fact in so_far.facts if isinstance(fact, LeaseDisowned))
    orphaned = orphans.find(fleet, view, memory, open_leases, (*disowned, *settled))
    marks = ListingMarks(
        view.market,
        listed_at,
        leases=[lease.lease_id for lease in open_leases],
        present=[lease.lease_id for lease in shown],
        suspicions=present.suspicions,
        absences=absences,
        doubts=doubts,
        orphan_sightings=orphaned.sightings,
        term_doubts=present.term_doubts,
    )
    suspects = memory.to_look_at(present.suspicions)
    to_probe = _to_probe(open_leases, lacking, suspects) | agreed_rate.unconfirmed(fleet, view, shown)
    to_look = ownership.unseen(view, settled) | {(view.market, key) for key in orphaned.to_look}
    return Reconciliation(
        facts=so_far.facts + present.facts + absent_facts + settled + orphaned.facts,
        memory=memory.after(marks, others),
        suspects=so_far.suspects | suspects | {lease.lease_id for lease in lacking},
        to_probe=so_far.to_probe | to_probe,
        faulty=so_far.faulty | ({view.market} if is_faulty else set()),
        to_look=so_far.to_look | to_look,
    )


def _present_leases(
    fleet: Fleet, view: MarketView, listed_at: datetime, memory: Memory, leases: list[Lease]
) -> _Present:
    """Return the facts and marks of the leases that a listing has, each by its own row."""
    rows = {row.instance_id: row for row in view.instances}
    facts: list[Fact] = []
    suspicions: dict[str, Suspicion] = {}
    doubts: dict[str, Mapping[str, TermDoubt]] = {}
    for lease in leases:
        terms = doubted_terms.settle(fleet, lease, rows[lease.instance_id], listed_at, memory.term_doubts)
        changes, suspicion = _listed(fleet, view, listed_at, memory, lease, terms.row)
        if suspicion is not None:
            suspicions[lease.lease_id] = suspicion
        doubts[lease.lease_id] = terms.doubts
        facts += doubted_terms.with_owed(changes, terms)
    return _Present(tuple(facts), suspicions, doubts)


def _listed(
    fleet: Fleet, view: MarketView, listed_at: datetime, memory: Memory, lease: Lease, row: Instance
) -> tuple[list[LeaseChanged], Suspicion | None]:
    """Return the changes of a lease by its row, oldest first, and a suspicion that waits for the next look."""
    shown = billed_times.as_shown(view, row)
    judged = waiting_verdict.unmarked(lease)
    started = doubt.started(fleet, judged, row)
    over = unseen_stops.changes(fleet, shown, started, row, _lost, _updated)
    fact, suspicion = _present(fleet, shown, listed_at, memory, over[-1].after if over else started, row)
    found = doubt.with_start(judged, started, [*over, *([fact] if fact is not None else [])])
    return [waiting_verdict.kept(each, lease) for each in found], suspicion


def _to_probe(leases: list[Lease], lacking: list[Lease], suspects: frozenset[str]) -> frozenset[str]:
    """Return the instances to look at by id, since two endpoints are rarely wrong in the same way."""
    return frozenset(lease.instance_id for lease in leases if lease in lacking or lease.lease_id in suspects)


def _present(
    fleet: Fleet, view: MarketView, listed_at: datetime, memory: Memory, lease: Lease, row: Instance
) -> tuple[LeaseChanged | None, Suspicion | None]:
    seen = row_metering.state_of(lease, row)
    previous = memory.last_seen.get(lease.lease_id, lease.accrued_until)
    rated = agreed_rate.settle(fleet, view, lease, row, previous)
    is_new = _is_fresh_rent(fleet, lease) and not failed_start.is_unmade(row)
    if seen is None or (is_new and not readback.is_readable(row)):
        fact = _unread(fleet, view, rated.lease, rated.row, (previous, listed_at))
        return (agreed_rate.with_rise(_of(lease, fact), rated.rise) if fact is not None else None), None
    doubted = _standing(memory.suspicions.get(lease.lease_id), lease, view)
    asked = readback.of_lease(lease, fleet.workload(lease.slot.workload))
    differs = readback.difference(asked, row) if is_new else ""
    if differs and (doubted is None or not doubted.differs):
        return None, Suspicion(seen, listed_at, previous, differs)
    if differs and doubted is not None and doubted.is_unanswered:
        return None, doubted
    if differs:
        return _mismatched(fleet, view, lease, row, seen, listed_at, differs), doubted
    fact, suspicion = _seen(fleet, view, doubted, rated, (previous, listed_at))
    if fact is None:
        # A rise is believed only together with the fact that meters it.
        is_kept = rated.lease == lease or rated.rise is not None
        fact = None if is_kept else LeaseChanged(lease, rated.lease, None)
    else:
        fact = agreed_rate.with_rise(_of(lease, fact), rated.rise)
    if suspicion is None and is_new:
        fact = fact or LeaseChanged(lease, lease, None)
        fact = replace(fact, after=msgspec.structs.replace(fact.after, read_back_at=listed_at))
    return fact, suspicion


def _of(lease: Lease, fact: LeaseChanged) -> LeaseChanged:
    """Return the fact as a change of the lease as the ledger has it, without the new doubt about its price.

    Whether a fact was recorded is read from the ledger's lease.
    """
    return replace(fact, before=lease)


def _standing(doubted: Suspicion | None, lease: Lease, view: MarketView) -> Suspicion | None:
    """Return the suspicion if it is still about the lease's present state, else None."""
    if doubted is None or lease.state_since > doubted.seen_at:
        return None
    is_answered = lease.instance_id in view.looked_up | view.absent_ids
    is_over = view.listed_at is not None and view.listed_at - doubted.seen_at >= ANSWER_WITHIN
    return replace(doubted, is_unanswered=doubted.is_unanswered and not (is_answered or is_over))


def _seen(
    fleet: Fleet,
    view: MarketView,
    doubted: Suspicion | None,
    rated: agreed_rate.Rated,
    between: tuple[datetime, datetime],
) -> tuple[LeaseChanged | None, Suspicion | None]:
    lease, row, (previous, listed_at) = rated.lease, rated.row, between
    is_called_off = groundless_releases.is_called_off(fleet, lease, row)
    is_leaving = lease.state is LeaseState.RELEASING and not is_called_off
    target = lease.state if is_leaving else row_metering.state_of(lease, row) or row_metering.STATES[row.state]
    since = previous if doubted is None else doubted.previous
    is_failed_bid = failed_start.is_of_bid(lease, row)
    if _is_loss(lease, target) and own_pause.is_shown(fleet, view, lease, row, since):
        lease = msgspec.structs.replace(lease, paused_by_us=True)
    if is_failed_bid or _is_loss(lease, target):
        if doubted is None or doubted.state is not target:
            return None, Suspicion(target, listed_at, previous)
        if doubted.is_unanswered or (is_failed_bid and listed_at - doubted.seen_at < failed_start.SHOWN_FOR):
            return None, doubted
        if guard_switch.is_judged_later(fleet, lease, doubted):
            return guard_switch.noted(lease, doubted), doubted
        return _lost(fleet, view, lease, row, target, (doubted.previous, doubted.seen_at)), doubted
    fact = readback.refused_and_done(lease, row, _updated(fleet, view, lease, row, target, (previous, listed_at)))
    if is_called_off and fact is not None:
        return replace(fact, evidence=groundless_releases.evidence(lease)), None
    fact = guard_refusal.seen(fleet, view, lease, readiness.seen(fleet, view, lease, row, fact))
    return acceptance_verdict.seen(fleet, lease, fact), None


def _unread(
    fleet: Fleet, view: MarketView, lease: Lease, row: Instance, between: tuple[datetime, datetime]
) -> LeaseChanged | None:
    """Return the change by an unreadable state: no interruption and no start, but unpaid GPUs may be paid now."""
    # What ends stays as it was, unless its market itself says that the GPUs may be charged until then.
    is_ending = lease.state is LeaseState.RELEASING and not row.may_bill_gpu
    is_counted = lease.bills is Bills.GPU_AND_DISK or is_ending
    return None if is_counted else _updated(fleet, view, lease, row, lease.state, between)


def _is_fresh_rent(fleet: Fleet, lease: Lease) -> bool:
    """Return whether a lease must still be read back: not after it ran or was rebid, since its order is then unknown.

    Nor is a lease read back again that was once listed as ordered: a later, higher price has risen (rule 21).
    """
    is_rebid = any(intent.lease_id == lease.lease_id and intent.kind is IntentKind.REBID for intent in fleet.intents)
    is_starting = lease.state is LeaseState.STARTING and not lease.has_run and lease.read_back_at is None
    return is_starting and not (lease.has_failed or lease.interrupted_by or is_rebid)


def _mismatched(
    fleet: Fleet, view: MarketView, lease: Lease, row: Instance, target: LeaseState, listed_at: datetime, differs: str
) -> LeaseChanged:
    """Return the lease as it really is, marked as unusable; it is released in this very cycle.

    A lease on other terms counts at its listed price. On the ordered terms an absurd price is doubted: the lease counts
    at its own price until the market has proven the other (rule 21).
    """
    is_absurd = row.tenure is lease.tenure and agreed_rate.is_absurd(lease.agreed, row)
    row = msgspec.structs.replace(row, gpu_rate=lease.gpu_rate) if is_absurd else row
    truly = msgspec.structs.replace(
        lease, tenure=row.tenure, gpu_rate=row.gpu_rate, disk_rate=row.disk_rate, disk_gb=row.disk_gb
    )
    truly = msgspec.structs.replace(truly, bid_limit=lease.bid_limit if row.limit is None else row.limit)
    truly = msgspec.structs.replace(truly, agreed_rate=lease.agreed if is_absurd else row.gpu_rate)
    after, charges = row_metering.metered(fleet, view, truly, row, target, (lease.accrued_until, listed_at))
    after = msgspec.structs.replace(after, has_failed=True, end_reason=readback.end_reason(row, differs))
    return LeaseChanged(lease, after, EventKind.LEASE_MISMATCHED, charges)


def _is_loss(lease: Lease, target: LeaseState) -> bool:
    is_live = lease.state in row_metering.LIVE or lease.is_in_run
    if _is_new_bid(lease):
        return False
    return is_live and target not in row_metering.LIVE and not lease.paused_by_us


def _is_new_bid(lease: Lease) -> bool:
    """Return whether a lease is a bid that no auction has judged yet, as far as listings have shown."""
    return lease.bid_limit is not None and not lease.has_run and lease.read_back_at is None


def _lost(
    fleet: Fleet, view: MarketView, lease: Lease, row: Instance, target: LeaseState, between: tuple[datetime, datetime]
) -> LeaseChanged:
    switched = guard_switch.of(fleet, lease) if row.state is InstanceState.PAUSED else None
    why, evidence = switched or cause.of_row(lease, row, view, between[0], fleet.now)
    evidence = interruption_notice.evidence(lease, host_maintenance.evidence(lease, why, evidence, fleet.now))
    was_running = lease.is_in_run
    has_failed = failed_start.is_shown(lease, row)
    failure = workload_end.failure(row) if has_failed else ""
    after, charges = row_metering.metered(fleet, view, lease, row, target, between)
    after = msgspec.structs.replace(
        after,
        interrupted_by=why,
        rival_floor=evidence.floor if why is Cause.OUTBID else lease.rival_floor,
        has_failed=has_failed,
        end_reason=failure or (guard_switch.SWITCHED if switched else lease.end_reason),
        is_held=lease.is_held,
        has_run=lease.has_run or billed_times.may_have_run(lease, view, row, between, fleet.poll),
    )
    kind = EventKind.LEASE_INTERRUPTED if was_running else EventKind.LEASE_START_LOST
    if was_running and workload_end.is_own_end(fleet, lease, why):
        kind = EventKind.LEASE_EXITED
    kind = EventKind.LEASE_FAILED if has_failed and not failed_start.is_unmade(row) else kind
    rest = loss_cooldown.of(lease, why, fleet.now, has_failed=has_failed and not workload_end.is_blameless(failure))
    change = LeaseChanged(lease, after, kind, charges, why, evidence, rest)
    if workload_end.is_fast(change):
        return replace(change, after=msgspec.structs.replace(after, end_reason=workload_end.FAST_EXIT))
    return replace(change, after=liveness.after_exit(fleet, lease, after))


def _updated(
    fleet: Fleet, view: MarketView, lease: Lease, row: Instance, target: LeaseState, between: tuple[datetime, datetime]
) -> LeaseChanged | None:
    kind = _kind(lease, target) or market_alerts.kind(lease, row)
    bills = row_metering.bills_of(lease, row)
    is_due = fleet.now - lease.accrued_until >= METER_EVERY or row_metering.traffic_of(lease, row) >= METER_TRAFFIC
    is_same_price = row.gpu_rate == lease.gpu_rate and row.disk_rate == lease.disk_rate
    is_same_bid = row.limit in {None, lease.bid_limit} and interruption_notice.at(lease, row) == lease.notice_at
    is_same_end = row.ends_at is None or (lease.ends_at is not None and abs(row.ends_at - lease.ends_at) <= SAME_END)
    is_same = lease.state is target and bills is lease.bills and is_same_price and is_same_bid and is_same_end
    has_run = lease.has_run or billed_times.may_have_run(lease, view, row, between, fleet.poll)
    is_due |= has_run is not lease.has_run or billed_times.may_have_been_given_back(lease, view, between)
    if is_same and not is_due:
        return None
    after, charges = row_metering.metered(fleet, view, lease, row, target, between)
    after = msgspec.structs.replace(after, has_run=has_run)
    if target is LeaseState.RUNNING and lease.state is not LeaseState.RUNNING:
        after = msgspec.structs.replace(after, interrupted_by=None, paused_by_us=False, has_run=True)
        is_passing = workload_end.is_passing(lease) or lease.state is LeaseState.RELEASING
        after = msgspec.structs.replace(after, end_reason="" if is_passing else lease.end_reason)
    if after.run_since not in {None, lease.run_since}:
        # A lease that was only missing from listings is still in the same stretch, with the same checkpoints.
        after = msgspec.structs.replace(after, runs=lease.runs + 1)
    return LeaseChanged(lease, after, kind, charges)


def _kind(lease: Lease, target: LeaseState) -> EventKind | None:
    if lease.state is target:
        return None
    if target is LeaseState.RUNNING:
        return EventKind.LEASE_RESUMED if lease.has_run else EventKind.LEASE_RUNNING
    if target is LeaseState.PAUSED and _is_new_bid(lease):
        return EventKind.LEASE_QUEUED
    return {
        LeaseState.PAUSED: EventKind.LEASE_PAUSED,
        LeaseState.OFFLINE: EventKind.LEASE_OFFLINE,
        LeaseState.EXITED: EventKind.LEASE_EXITED,
        LeaseState.STARTING: EventKind.LEASE_STARTING,
    }.get(target)
