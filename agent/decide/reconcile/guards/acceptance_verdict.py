"""Hosts that differ from the rented terms, by the guard's check at the start: a failed start, or an alert.

Invariants:
1. Only a figure that was read and contradicts the rent counts against a host. An unknown figure never does.
2. A lease is given up for its host only in the first minutes of its first stretch of running, before it holds work.
   Finished work counts on any host.
3. A host's false figures can only count against a host: nothing that it reports makes us pay more. Every host of a
   workload has the same key of the bucket, so one could write the check of another.
"""

from collections.abc import Iterator
from datetime import timedelta

from msgspec.structs import replace

from agent.decide.facts import Alert, LeaseChanged
from agent.decide.pricing import cooldowns, measured_speed
from agent.domain.fleet import Fleet
from agent.domain.market import gpu_identity
from agent.domain.record import cooldown
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.acceptance_report import AcceptanceReport
from agent.domain.work.guard_terms import Accept, GuardTerms
from agent.domain.work.workload import Workload

LATEST = timedelta(minutes=15)
"""After this much running a lease is kept, since it may hold work. The check takes a minute, and the reading another
one."""
REJECTED = "not_as_rented: "
"""The first word of the end reason of a rejected lease. Everything else treats it as a failed start."""
LEAST_MEMORY = 0.9
"""The least share of the offered memory, or else of the workload's required memory. Error correction uses some.
Assumed."""


def seen(fleet: Fleet, lease: Lease, so_far: LeaseChanged | None) -> LeaseChanged | None:
    """Return the change to a failed start if the host is not as rented, else `so_far`."""
    now = so_far.after if so_far is not None else lease
    if now.has_failed or (so_far is not None and so_far.kind is not None) or not _may_reject(fleet, now):
        return so_far
    why = _found(fleet, now)
    if not why:
        return so_far
    after = replace(now, has_failed=True, end_reason=f"{REJECTED}{why}")
    rest = cooldown.of_host(lease.host, fleet.now + cooldowns.START_FAILED, "a host that differs from the rented terms")
    charges = so_far.charges if so_far is not None else ()
    return LeaseChanged(lease, after, EventKind.LEASE_NOT_READY, charges, cooldown=rest)


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield an alert for each lease that goes on although its host differs from the rented terms."""
    for lease in fleet.leases:
        if lease.has_failed or lease.is_held or lease.state is not LeaseState.RUNNING or _may_reject(fleet, lease):
            continue
        if why := _found(fleet, lease):
            sentence = (
                f"{lease.slot} on host {lease.host_id} differs from the rented terms, as its guard says: {why}; "
                f"`gpubid release {lease.slot}` gives it up"
            )
            yield Alert(EventKind.ALERT_NOT_AS_RENTED, lease.lease_id, sentence)


def difference(report: AcceptanceReport, lease: Lease, work: Workload) -> str:
    """Return how the host of a lease contradicts the rented terms, or an empty text."""
    return lacking(report, lease) or broken(report, lease, work) or _by_script(report, work)


def broken(report: AcceptanceReport, lease: Lease, work: Workload) -> str:
    """Return how the GPUs of a host are worse than promised or do not work, or an empty text."""
    wanted = lease.vram_mb or work.requirements.min_vram_mb or 0
    memory = min((gpu.memory_mb for gpu in report.gpus if gpu.memory_mb is not None), default=None)
    if memory is not None and memory < LEAST_MEMORY * wanted:
        return f"a GPU has {memory:.0f} MB of memory instead of {wanted}"
    errors = sum(gpu.uncorrected_errors or 0 for gpu in report.gpus)
    if errors:
        return f"{errors} uncorrected errors of GPU memory"
    return f"CUDA does not start: {report.cuda_error or 'it gives no reason'}" if report.cuda_starts is False else ""


def lacking(report: AcceptanceReport, lease: Lease) -> str:
    """Return which of the promised GPUs of a lease are not there, or an empty text."""
    if report.gpu_count is not None and report.gpu_count < lease.gpus:
        return f"{report.gpu_count} of {lease.gpus} GPUs are there"
    other = other_card(report, lease)
    return f"its GPU is {other} and not {lease.gpu}" if other else ""


def other_card(report: AcceptanceReport, lease: Lease) -> str:
    """Return the name of a GPU that is not the model that was rented, or an empty text."""
    names = (gpu.name for gpu in report.gpus if gpu.name)
    return next((name for name in names if not gpu_identity.may_be_same(lease.gpu, name)), "")


def is_new(fleet: Fleet, lease: Lease) -> bool:
    """Return whether a lease is in the first minutes of its first stretch of running, as far as the ledger knows."""
    # A lease whose container has ended may have run for hours.
    is_first = lease.runs <= 1 and fleet.now - (lease.run_since or lease.opened_at) <= LATEST
    # One that was adopted into a lost ledger may have run for days, and was checked by the daemon that rented it.
    return is_first and bool(lease.offer_id)


def _by_script(report: AcceptanceReport, work: Workload) -> str:
    """Return how the operator's own check ended, if it did not accept the host."""
    script = report.script
    if script is None or script.code == 0 or work.guard is None or not work.guard.accept_script:
        return ""
    end = "did not end in time" if script.code is None else f"ended with exit code {script.code}"
    return f"accept_script {end}" + (f": {script.last_line}" if script.last_line else "")


def _found(fleet: Fleet, lease: Lease) -> str:
    """Return how the guard's check contradicts the rent of a lease; empty if it does not, or no check is wanted."""
    work, report = fleet.workload(lease.slot.workload), fleet.guard_reports.get(lease.intent_id)
    if work is None or work.guard is None or work.guard.accept is Accept.OFF or report is None:
        return ""
    is_done = report.end is not None and report.end.done
    if report.acceptance is None or is_done:
        return ""
    return difference(report.acceptance, lease, work) or _too_slow(fleet, report.acceptance, lease, work.guard)


def _too_slow(fleet: Fleet, report: AcceptanceReport, lease: Lease, terms: GuardTerms) -> str:
    """Return how a host is slower than the workload accepts, or an empty text.

    With few known hosts none is too slow.
    """
    if terms.accept_floor is None or not report.matmul_tflops:
        return ""
    usual = measured_speed.typical(fleet.host_checks.values(), lease.gpu, lease.host, lease.owner_id)
    if usual is None or not usual.is_known or report.matmul_tflops >= terms.accept_floor * usual.figure:
        return ""
    share = f"{report.matmul_tflops / usual.figure:.0%} of the median of {usual.voices} other owners' {lease.gpu}"
    return f"a GPU multiplies at {report.matmul_tflops:.1f} TFLOPS, {share}; accept_floor is {terms.accept_floor:g}"


def _may_reject(fleet: Fleet, lease: Lease) -> bool:
    """Return whether a lease may be rejected for its host: the workload wants that, and the lease has no work yet."""
    work = fleet.workload(lease.slot.workload)
    is_wanted = work is not None and work.guard is not None and work.guard.accept is Accept.REJECT
    return (
        is_wanted
        and is_new(fleet, lease)
        and not lease.is_held
        and lease.state in {LeaseState.RUNNING, LeaseState.EXITED}
    )
