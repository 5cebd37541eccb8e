"""A series of listings, poll after poll, and their reconciliations."""

from datetime import timedelta
from typing import Any

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.reconcile.reconcile import Reconciliation
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance
from agent.domain.record.lease import ALLOWED, Lease, LeaseState
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders

NOW = builders.NOW
POLL = timedelta(seconds=15)
CHECKPOINT = Checkpoint(timedelta(minutes=20), timedelta(minutes=1), place=CheckpointPlace.REMOTE)


RUNS = builders.lease()
STARTS = builders.lease(state=LeaseState.STARTING, state_since=builders.ago(minutes=2))
ROW = builders.instance()


DENIED: dict[str, Any] = {"absent_ids": frozenset({"1"})}


def seen(held: Lease, *rows: Instance, at: int = 0, memory: Memory | None = None, **changes: Any) -> Reconciliation:
    """Reconcile one lease with a listing taken `at` polls after `NOW`."""
    return all_seen((held,), *rows, at=at, memory=memory, **changes)


def all_seen(
    held: tuple[Lease, ...], *rows: Instance, at: int = 0, memory: Memory | None = None, **changes: Any
) -> Reconciliation:
    return reconcile.reconcile(world(held, *rows, at=at, **changes), memory or Memory())


def world(held: tuple[Lease, ...], *rows: Instance, at: int = 0, **changes: Any) -> Fleet:
    now = NOW + at * POLL
    work, poll = changes.pop("work", builders.workload(slots=9)), changes.pop("poll", POLL)
    view = builders.view(
        instances=rows,
        listed_at=now,
        listed_monotonic=1000.0 + at * 15,
        listings=10 + at,
        **changes,
    )
    return builders.fleet(leases=held, now=now, poll=poll, workloads=(work,), markets={"vast": view})


def changed(result: Reconciliation) -> LeaseChanged:
    """Return the one fact, which must be a change of a lease."""
    (fact,) = [fact for fact in result.facts if isinstance(fact, LeaseChanged)]
    return fact


def missed(
    held: tuple[Lease, ...],
    polls: int,
    *,
    memory: Memory | None = None,
    rows: tuple[Instance, ...] = (),
    **changes: Any,
) -> list[Reconciliation]:
    """Reconcile listings without the leases, and carry over the changes of each look."""
    results = []
    by_id = {lease.lease_id: lease for lease in held}
    memory = memory or Memory()
    for at in range(1, polls + 1):
        result = all_seen(tuple(by_id.values()), *rows, at=at, memory=memory, **changes)
        memory = result.memory
        for fact in result.facts:
            if isinstance(fact, LeaseChanged):
                assert fact.after.state is fact.before.state or fact.after.state in ALLOWED[fact.before.state]
                by_id[fact.after.lease_id] = fact.after
        by_id = {key: lease for key, lease in by_id.items() if lease.is_open}
        results.append(result)
    return results


def kinds(results: list[Reconciliation]) -> list[str]:
    return [fact.kind or "" for result in results for fact in result.facts if isinstance(fact, LeaseChanged)]
