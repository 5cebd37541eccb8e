"""An instance whose task is done goes on with another slot: the ledger first, then a note to its guard.

Invariants:
1. One transaction ends the old lease, opens the new one and settles the order. So the instance never has two leases,
   and a crash never leaves it without one.
2. The note is written after that, once, and never over another one. If the answer of the bucket was lost, the guard's
   first beat shows that the guard read the note. Without a beat the lease is released (`untaken_task.py`).
3. The market is asked for nothing. It goes on billing the same instance at the same price.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import structlog

from agent.act import crashpoint, intents, rent_terms
from agent.act.guarding.guard_launch import GuardLaunch
from agent.act.record import add_charges
from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketError
from agent.clock import Clock
from agent.decide.accounting import meter
from agent.decide.operators import operator_holds, reload
from agent.decide.reconcile import outcomes
from agent.decide.reconcile.tasks import reassigned_lease
from agent.domain.record import hold
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import Word
from agent.domain.record.intent import Intent, IntentState
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work import kept_terms
from agent.domain.work.decision import Release, Rent
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction
from agent.markets import market_errors

log = structlog.get_logger("gpubid.guard")

VERSION = 1
MOST_BYTES = 60_000
"""A guard reads a note of up to 64 kB."""
TRIES = 2
_SHUT = (Word.DONE, Word.KILL, Word.HELD, Word.PAUSE, Word.LOCK, Word.DRAIN)


class HostKeeping:
    """Lets instances go on with other slots."""

    def __init__(self, ledger: Ledger, clock: Clock, credential: rent_terms.Credential) -> None:
        """Write to `ledger`; `credential` returns the key of a bucket by the name of its credential."""
        self._ledger = ledger
        self._clock = clock
        self._credential = credential

    async def go_on(
        self,
        intent: Intent,
        decision: Rent,
        kept: Lease,
        work: Workload,
        launch: GuardLaunch,
        ends: Sequence[meter.Turn],
    ) -> Intent | None:
        """Record that the instance of `kept` goes on with a slot, and tell its guard; None if it may not.

        `ends` are the turns of the old lease's billing up to now.

        Raises:
            LedgerError: nothing was written.
        """
        now = self._clock.now()
        known = self._ledger.recollection(now)
        note = note_of(launch, work, decision)
        if not may_go_on(known, kept, decision, now) or len(note) > MOST_BYTES:
            return None
        async with self._ledger.transaction() as tx:
            settled = _record(tx, intent, decision, kept, work, ends, now)
        crashpoint.reached("resolved", intent.kind.value)
        log.info(EventKind.LEASE_REASSIGNED, lease=settled.lease_id, slot=str(intent.slot), before=str(kept.slot))
        await self._tell(known, kept, work, note)
        crashpoint.reached("told", intent.kind.value)
        return settled

    async def _tell(self, known: Recollection, kept: Lease, work: Workload, note: bytes) -> None:
        """Write the note into the folder of the finished task, where its guard looks."""
        place = work.guard.bucket if work.guard is not None else None
        runs = (run for run in known.guard_runs if (run.slot, run.run) == (kept.slot, kept.guard_run))
        run = next(runs, None)
        if place is None or run is None:
            return
        path = f"{run.folder(self._ledger.fleet_id)}/next-{kept.intent_id}.json"
        for left in reversed(range(TRIES)):
            try:
                await BucketClient(place, self._credential(place.credential)).write(path, note, is_new=True)
            except (BucketError, ValueError, market_errors.Rejected) as error:
                code = error.code if isinstance(error, BucketError) else "bad_credential"
                log.warning("guard.unassigned", lease=kept.lease_id, code=code, tries_left=left)
            else:
                return


def may_go_on(known: Recollection, kept: Lease, decision: Rent, now: datetime) -> bool:
    """Return whether the ledger still has what was decided on: a running lease, and a slot that may be filled."""
    place = decision.slot
    is_same = kept in known.leases and kept.state is LeaseState.RUNNING
    is_same &= decision.kept is not None and kept.slot == decision.kept.slot
    is_taken = any(lease.slot == place for lease in known.leases)
    is_taken |= any(intent.slot == place and intent.kind.is_paying for intent in known.intents)
    shut = operator_holds.find(hold.in_force(known.holds, now), _SHUT, operator_holds.of_slot(place))
    return is_same and not is_taken and shut is None


def note_of(launch: GuardLaunch, work: Workload, decision: Rent) -> bytes:
    """Return the note with a task, as the guard reads it."""
    place = work.guard.bucket if work.guard is not None else None
    said = {
        "version": VERSION,
        "lease": launch.lease,
        "root": launch.root(place),
        "run": launch.run,
        "manifest_exists": launch.manifest_exists,
        "variables": kept_terms.variables(work, decision.slot.index),
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def _record(
    tx: Transaction,
    intent: Intent,
    decision: Rent,
    kept: Lease,
    work: Workload,
    ends: Sequence[meter.Turn],
    now: datetime,
) -> Intent:
    end = outcomes.written(Release(kept, decision.reason), now, work.checkpoint, work.ready, ends=ends)
    old = reassigned_lease.ended(end.lease, now)
    new = reassigned_lease.opened(kept, old, intent, reload.spec_digest(work, intent.slot.index))
    tx.record_intent(replace(intent, guard_terms=kept.guard_terms))
    tx.advance_intent(intent.intent_id, IntentState.SENT, at=now)
    ids = {"instance_id": kept.instance_id, "lease_id": new.lease_id}
    tx.advance_intent(intent.intent_id, IntentState.CONFIRMED, at=now, outcome="done", **ids)
    tx.update_lease(old)
    add_charges(tx, old, end.charges, now)
    tx.open_lease(new)
    begun = intents.event_of(
        EventKind.LEASE_REASSIGNED, replace(intent, lease_id=new.lease_id), decision, new.host_id, now
    )
    tx.append_event(_end_of(old, begun, intent.slot))
    tx.append_event(begun)
    return replace(intent, state=IntentState.CONFIRMED, resolved_at=now, lease_id=new.lease_id)


def _end_of(old: Lease, begun: Event, next_slot: Slot) -> Event:
    """Return the event of the old lease's end from that of the lease that goes on with its instance."""
    return replace(
        begun,
        kind=EventKind.LEASE_ENDED,
        workload=old.slot.workload,
        slot=old.slot.index,
        lease_id=old.lease_id,
        reason_code=reassigned_lease.REASSIGNED,
        reason=f"{reassigned_lease.REASSIGNED}: its host goes on with {next_slot}",
    )
