"""The work of a batch whose container ended: lost until that end is judged, and useful once the work is done.

Invariant: work moves back at most once, since the record of its loss goes with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.accounting import meter, phases
from agent.decide.facts import Fact, LeaseChanged, Marked
from agent.domain.market.interruption import Cause
from agent.domain.record.account import LostWork
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.paid_time import Phases

NO_EVIDENCE = frozenset({Cause.EXTERNAL_STOP, Cause.UNKNOWN, Cause.CONTAINER_EXIT})
"""Causes of an end that may be the work's own."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A lease whose run ended with its work done. `lost` are the microseconds that its end counted as lost.

    `lost` is None if an earlier pass recorded the end: then the ledger has the figure. `ended_at` is the end of the run
    and the key of the record of its loss.
    """

    lease: Lease
    lost: int | None
    ended_at: datetime


def of(facts: Iterable[Fact]) -> Iterator[Finished]:
    """Yield the leases that these facts show to be done and whose own container had ended."""
    known = list(facts)
    changes = {fact.after.lease_id: fact for fact in known if isinstance(fact, LeaseChanged)}
    for fact in known:
        if not isinstance(fact, Marked) or fact.kind is not EventKind.WORKLOAD_DONE or fact.lease is None:
            continue
        change = changes.get(fact.lease.lease_id)
        lease = fact.lease if change is None else change.after
        if lease.state is LeaseState.EXITED and lease.interrupted_by is Cause.CONTAINER_EXIT:
            lost = None if change is None or change.cause is None else lost_by(change)
            yield Finished(lease, lost, lease.state_since)


def of_person(lease: Lease, losses: Sequence[LostWork]) -> Finished | None:
    """Return a lease whose work a person calls done, if it waited for that word: its last run ended unexplained.

    `losses` are the records of its runs' ends, oldest first. A loss by the market is none of its work's own ends.
    """
    is_down = lease.state in {LeaseState.EXITED, LeaseState.PAUSED}
    if not is_down or lease.interrupted_by not in NO_EVIDENCE or not losses:
        return None
    last = losses[-1]
    return Finished(lease, last.lost, last.at) if last.cause is lease.interrupted_by else None


def lost_by(change: LeaseChanged) -> int:
    """Return the microseconds of work that a change counted as lost."""
    return sum(charge.phases.spoiled for charge in change.charges if charge.phases is not None)


def charges(done: Finished, lost: int) -> Iterator[meter.Charge]:
    """Yield the charges without money that make `lost` microseconds before the end useful, by UTC day."""
    for start, end in meter.days(done.ended_at - timedelta(microseconds=lost), done.ended_at):
        part = Phases(done.lease.lease_id, start.date(), finished=phases.micros(start, end))
        yield meter.Charge(part.lease_id, part.day, useful_seconds=part.finished / 1_000_000, phases=part)
