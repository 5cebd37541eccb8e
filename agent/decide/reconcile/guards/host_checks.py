"""Checks of hosts by their guards that are not recorded yet.

Invariants:
1. A host that differs from the rented terms gives no figures for the model that it was rented as. Only the GPUs that
   were seen, or its defect, are recorded.
2. Such a lack or defect is recorded only while a lease may be given up for it, in its first minutes: another container
   of the workload has the bucket's key and could forge it at any time.
3. A check is recorded once, and again if a later start of the same lease finds other figures.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agent.decide.facts import HostChecked
from agent.decide.reconcile.guards import acceptance_verdict, host_links
from agent.domain.fleet import Fleet
from agent.domain.record.host_check import HostCheck
from agent.domain.record.lease import Lease
from agent.domain.work.acceptance_report import AcceptanceReport
from agent.domain.work.guard_report import GuardReport
from agent.domain.work.workload import Workload

UNKNOWN: Mapping[str, Any] = dict.fromkeys(
    (
        "matmul_tflops",
        "copy_to_gpu_gbps",
        "copy_from_gpu_gbps",
        "disk_write_mbps",
        "power_share",
        "pcie_generation",
        "pcie_width",
        "pcie_share",
        "clock_events",
    )
)
"""The figures of a host that is another one than was rented."""


def new_checks(fleet: Fleet) -> Iterator[HostChecked]:
    """Yield the check of every lease whose guard reports figures that differ from the recorded ones."""
    for lease in fleet.leases:
        report, work = fleet.guard_reports.get(lease.intent_id), fleet.workload(lease.slot.workload)
        if report is None or report.acceptance is None or work is None or lease.is_held or lease.guard_run is None:
            continue
        after = _check(fleet, lease, work, report, report.acceptance)
        before = fleet.host_checks.get(lease.lease_id)
        if after is not None and (before is None or replace(after, checked_at=before.checked_at) != before):
            yield HostChecked(after)


def _check(
    fleet: Fleet, lease: Lease, work: Workload, report: GuardReport, acceptance: AcceptanceReport
) -> HostCheck | None:
    """Return the check to record, or None if nobody may say any more that the host differs."""
    after, why = _read(lease, report, acceptance), acceptance_verdict.difference(acceptance, lease, work)
    if not why:
        passed = _passed_script(acceptance, work)
        return replace(after, defect="", script=passed) if _has_passed(acceptance) else after
    if not acceptance_verdict.is_new(fleet, lease):
        return None
    after = replace(after, **UNKNOWN)
    if acceptance_verdict.lacking(acceptance, lease):
        return after
    is_broken = bool(acceptance_verdict.broken(acceptance, lease, work))
    return replace(after, defect=why, script=None if is_broken else _script(work))


def _has_passed(report: AcceptanceReport) -> bool:
    """Return whether a check without a defect saw the GPUs work: one that saw nothing says nothing."""
    return report.cuda_starts is True and any(gpu.memory_mb is not None for gpu in report.gpus)


def _script(work: Workload) -> str | None:
    return work.guard.script_digest if work.guard is not None and work.guard.accept_script else None


def _passed_script(report: AcceptanceReport, work: Workload) -> str | None:
    return _script(work) if report.script is not None and report.script.code == 0 else None


def _seen_gpu(lease: Lease, report: AcceptanceReport) -> str | None:
    names = (gpu.name for gpu in report.gpus if gpu.name)
    return acceptance_verdict.other_card(report, lease) or next(names, None)


def _read(lease: Lease, report: GuardReport, acceptance: AcceptanceReport) -> HostCheck:
    limits = [(gpu.power_limit_watts, gpu.power_default_watts) for gpu in acceptance.gpus]
    shares = [limit / usual for limit, usual in limits if limit is not None and usual is not None and usual >= 1.0]
    return HostCheck(
        lease_id=lease.lease_id,
        market=lease.market,
        host_id=lease.host_id,
        owner_id=lease.owner_id,
        gpu=lease.gpu,
        gpus=lease.gpus,
        dlperf=lease.dlperf,
        checked_at=report.read_at,
        matmul_tflops=acceptance.matmul_tflops,
        copy_to_gpu_gbps=acceptance.copy_to_gpu_gbps,
        copy_from_gpu_gbps=acceptance.copy_from_gpu_gbps,
        disk_write_mbps=acceptance.disk_write_mbps,
        power_share=min(shares, default=None),
        **host_links.of(acceptance),
        seen_gpus=acceptance.gpu_count,
        seen_gpu=_seen_gpu(lease, acceptance),
    )
