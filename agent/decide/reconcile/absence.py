"""Leases that a complete listing lacks: missing, gone by the market's own statement, or a fault of the market.

Invariants (rule 4):
1. A lease is gone only when the market denies it by its own code with a proven key, and complete listings at least
   `GONE_AFTER` apart lack it. Where the market's word proves no end, that is not enough for a lease that was last seen
   with a GPU that bills: it counts on until a person says that its machine is gone.
2. Several leases that vanish at once are a fault of the market. Leases that we ordered to end do not count among them.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from agent.decide.accounting import kept_work, meter, phases, running_time
from agent.decide.facts import Alert, Fact, LeaseChanged
from agent.decide.reconcile import agreed_rate, billed_times, loading_time, ownership
from agent.decide.reconcile.guards import guard_switch
from agent.decide.reconcile.losses import cause, loss_cooldown
from agent.decide.reconcile.pass_memory import Absence, Memory
from agent.domain.fleet import Fleet, MarketView
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent, IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState

GONE_AFTER = 120.0
"""Seconds between the two complete listings that must lack an instance."""
FAULT_PATIENCE = 3600.0
"""Seconds after which leases that vanished together are believed gone, if the market itself denies each."""
LISTED_NOWHERE = "it lists no such instance"


def find(
    fleet: Fleet, view: MarketView, memory: Memory, lacking: Iterable[Lease]
) -> tuple[tuple[Fact, ...], dict[str, Absence], bool]:
    """Return the facts of leases that a fresh listing lacks, their absences, and whether that is a market's fault."""
    facts: list[Fact] = []
    absences: dict[str, Absence] = {}
    lacking = list(lacking)
    # Instances that their own guards destroyed are no sign of a fault, however many they are.
    sudden = (lease for lease in lacking if guard_switch.of(fleet, lease) is None)
    vanished = [lease for lease in sudden if _may_vanish(lease) and lease.lease_id not in memory.absences]
    is_fault = len(vanished) > 1
    for lease in lacking:
        known = memory.absences.get(lease.lease_id)
        since = known or Absence(view.listed_monotonic, view.listings, in_fault=is_fault and _may_vanish(lease))
        # Its bucket may be read only after the listing that lacked it.
        since = replace(since, in_fault=since.in_fault and guard_switch.of(fleet, lease) is None)
        # The absence is kept until the ledger has the lease's end, so that a fact that could not be recorded is found
        # again.
        absences[lease.lease_id] = since
        facts += _absence_facts(fleet, view, memory, lease, since, is_first=known is None)
        facts += _unproven_alert(view, lease)
    faulted = {lease_id for lease_id, absence in absences.items() if absence.in_fault}
    if faulted:
        names = ", ".join(sorted(lease.instance_id for lease in lacking if lease.lease_id in faulted))
        sentence = (
            f"{view.market}: instances {names} vanished from one listing; they are held, counted and not replaced; if "
            "the market's console lacks them too, `gpubid release LEASE` ends each"
        )
        facts.append(Alert(EventKind.ALERT_MARKET_FAULT, view.market, sentence))
    return tuple(facts), absences, bool(faulted)


def _is_released(lease: Lease) -> bool:
    return lease.state is LeaseState.RELEASING and lease.bills is Bills.NOTHING


def _unproven_alert(view: MarketView, lease: Lease) -> list[Fact]:
    if not view.denies(lease.instance_id) or not view.hides_end(lease):
        return []
    sentence = (
        f"{lease.market} has no instance {lease.instance_id} any more, and nobody watched the end of its machine "
        f"({lease.host_id}): {lease.slot} counts on at {lease.billing_rate}. Look at the console of its cloud, end the "
        f"machine if it is there, and then say `gpubid release {lease.lease_id} --gone`"
    )
    return [Alert(EventKind.ALERT_STATE_UNKNOWN, f"{lease.lease_id}@denied", sentence)]


def release_in_doubt(fleet: Fleet, lease: Lease) -> Intent | None:
    """Return the lease's release without a clear answer, or None.

    With one, an absence means that the release was done.
    """
    return next(
        (each for each in fleet.intents if each.kind is IntentKind.RELEASE and each.lease_id == lease.lease_id), None
    )


def _may_vanish(lease: Lease) -> bool:
    """Return whether an absence may be a fault: not if we ordered the end, nor if the instance was never seen."""
    return lease.is_proven and lease.state is not LeaseState.RELEASING


def _is_patience_over(fleet: Fleet, lease: Lease, waited: float) -> bool:
    """Return whether a fault has lasted for `FAULT_PATIENCE`; the ledger has the start of the absence."""
    missing_for = fleet.now - lease.state_since if lease.state is LeaseState.MISSING else timedelta()
    return max(waited, missing_for.total_seconds()) >= FAULT_PATIENCE


def _absence_facts(
    fleet: Fleet, view: MarketView, memory: Memory, lease: Lease, absence: Absence, *, is_first: bool
) -> list[Fact]:
    listed_at = view.listed_at or fleet.now
    last_seen = memory.last_seen.get(lease.lease_id, lease.accrued_until)
    if _is_released(lease):
        ended = msgspec.structs.replace(lease, state=LeaseState.ENDED, ended_at=listed_at)
        owed = agreed_rate.unlisted_end(fleet, lease, (), last_seen, lease.accrued_until)
        return [LeaseChanged(lease, ended, EventKind.LEASE_RELEASED, owed)]
    waited = view.listed_monotonic - absence.monotonic
    missed_at = listed_at - timedelta(seconds=max(waited, 0.0))
    if view.denies(lease.instance_id) and not view.hides_end(lease):
        if lease.state is LeaseState.MISSING:
            # A restart forgets which listing lacked the lease first; the ledger does not.
            missed_at = min(missed_at, lease.state_since)
        if release_in_doubt(fleet, lease) is not None:
            # Nobody knows when the market carried out the release: the process may have been dead for any time before.
            return [_gone(fleet, view, lease, (last_seen, missed_at), listed_at)]
        is_due = waited >= GONE_AFTER and not guard_switch.is_awaited(fleet, lease, missed_at)
        if is_due and (not absence.in_fault or _is_patience_over(fleet, lease, waited)):
            if not lease.is_proven:
                return _never_seen(fleet, view, lease, (last_seen, missed_at))
            return [_gone(fleet, view, lease, (last_seen, missed_at), listed_at)]
    if is_first or lease.state in {LeaseState.MISSING, LeaseState.RELEASING}:
        return []
    between = (last_seen, missed_at)
    loading_since = loading_time.since(lease, LeaseState.MISSING, listed_at, between, fleet.poll)
    missing = msgspec.structs.replace(
        lease, state=LeaseState.MISSING, state_since=listed_at, loading_since=loading_since
    )
    return [LeaseChanged(lease, missing, EventKind.LEASE_MISSING)]


def _never_seen(fleet: Fleet, view: MarketView, lease: Lease, between: tuple[datetime, datetime]) -> list[Fact]:
    """Return the end, as never ours, of a lease whose id only a reply named.

    The instance may have been ours, so the lease is metered as if a listing had shown it.
    """
    gone = _gone(fleet, view, lease, between, fleet.now)
    return ownership.disowned(
        msgspec.structs.replace(lease, accrued_until=gone.after.accrued_until), LISTED_NOWHERE, gone.charges
    )


def _gone(
    fleet: Fleet, view: MarketView, lease: Lease, between: tuple[datetime, datetime], now: datetime
) -> LeaseChanged:
    """Return the end of a gone lease.

    It counts up to the first listing that lacked it, or to the end in the market's record.
    """
    last_seen = max(between[0], lease.accrued_until)
    missed_at = max(between[1], last_seen)
    is_release = lease.state is LeaseState.RELEASING
    # Before a release whose answer was lost, the market may have given the lease back, as before one that it confirmed.
    ends = billed_times.to_the_end(
        lease, billed_times.Look(last_seen, view.events, view.rules), missed_at, is_ordered=is_release
    )
    stopped_at = meter.first_stop(ends, last_seen)
    work, kept_at = fleet.workload(lease.slot.workload), kept_work.kept_at(fleet, lease)
    ran = phases.Ran(lease.run_since, stopped_at, is_lost=not is_release)
    promised = phases.promise(work, kept_at)
    split = phases.split(lease, missed_at, ends, promised, ran)
    charges = meter.accrue(lease, missed_at, ends)
    owed = agreed_rate.unlisted_end(fleet, lease, charges, last_seen, missed_at)
    charges = (*charges, *owed, *phases.charges(split))
    if lease.run_since is not None:
        charges = (*charges, meter.stretch_end(lease, stopped_at, work, is_lost=not is_release, kept_at=kept_at))
    after = msgspec.structs.replace(
        lease, state=LeaseState.ENDED, ended_at=now, bills=Bills.NOTHING, accrued_until=missed_at, run_since=None
    )
    after = running_time.counted(lease, after, charges, promised.ready)
    if is_release:
        return LeaseChanged(lease, after, EventKind.LEASE_RELEASED, charges)
    why, evidence = guard_switch.of(fleet, lease) or cause.of_absence(lease, now)
    after = msgspec.structs.replace(after, state_since=now, interrupted_by=why, end_reason=why.value)
    kind = EventKind.LEASE_INTERRUPTED if lease.run_since is not None else EventKind.LEASE_GONE
    return LeaseChanged(lease, after, kind, charges, why, evidence, loss_cooldown.of(lease, why, now, has_failed=False))
