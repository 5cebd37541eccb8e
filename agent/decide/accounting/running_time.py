"""The time that a lease has run since it first was ready, in whole microseconds, from the phases of its charges.

Invariants:
1. Only paid time in which the container ran counts, as the market's listings and its record date it.
2. Time counts from the first sign of readiness on, also later time without that sign. A workload without such a sign
   counts from its first start, also the later time after a reload that adds a sign.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from agent.decide.accounting.meter import Charge
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.ready_sign import Readiness
from agent.domain.work.workload import Workload


def counted(before: Lease, after: Lease, charges: Iterable[Charge], ready: Readiness) -> Lease:
    """Return the lease after a change, with the running time of the change's charges added."""
    has_begun = before.may_have_worked or not ready.is_asked
    parts = [charge.phases for charge in charges if charge.phases is not None]
    # Before it is ready for the first time, only the time counts that turns out to have been useful.
    micros = sum(part.restoring + part.useful if has_begun else part.redeemed for part in parts)
    return replace(after, ran_micros=after.ran_micros + micros) if micros else after


def of_workload(
    work: Workload, leases: Iterable[Lease], ended_micros: Mapping[str, int], until: Callable[[Lease], datetime]
) -> timedelta:
    """Return the running time of all leases of a workload, ended ones included.

    `ended_micros` is that of ended leases by workload. `until` returns for how long an open lease is known to run.
    """
    names = {work.name, work.was} - {""}
    ended = timedelta(microseconds=sum(ended_micros.get(name, 0) for name in names))
    mine = (lease for lease in leases if lease.slot.workload in names and not lease.is_held)
    return sum((of_lease(lease, work, until(lease)) for lease in mine), ended)


def of_lease(lease: Lease, work: Workload, until: datetime) -> timedelta:
    """Return the running time of one lease up to `until`, or to its last metering if that is later."""
    ran = timedelta(microseconds=lease.ran_micros)
    if lease.state is not LeaseState.RUNNING or lease.bills is not Bills.GPU_AND_DISK:
        return ran
    if work.ready.is_asked and not lease.may_have_worked:
        return ran
    # The ledger is metered every few minutes.
    return ran + max(until - max(lease.accrued_until, lease.began), timedelta())
