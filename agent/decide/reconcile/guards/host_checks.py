"""Checks of hosts by their guards that are not recorded yet.

Invariants:
1. A host that differs from the rented terms gives no figures for the model that it was rented as: if GPUs are missing
   or of another model, only what was seen is recorded.
2. Such a lack is recorded only while a lease may be given up for it, in its first minutes: another container of the
   workload has the bucket's key and could forge it at any time.
3. A check is recorded once, and again if a later start of the same lease finds other figures.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agent.decide.facts import HostChecked
from agent.decide.reconcile.guards import acceptance_verdict
from agent.domain.fleet import Fleet
from agent.domain.record.host_check import HostCheck
from agent.domain.record.lease import Lease
from agent.domain.work.acceptance_report import AcceptanceReport
from agent.domain.work.guard_report import GuardReport

UNKNOWN: Mapping[str, Any] = dict.fromkeys(
    ("matmul_tflops", "copy_to_gpu_gbps", "copy_from_gpu_gbps", "disk_write_mbps", "power_share")
)
"""The figures of a host that is another one than was rented."""


def new_checks(fleet: Fleet) -> Iterator[HostChecked]:
    """Yield the check of every lease whose guard reports figures that differ from the recorded ones."""
    for lease in fleet.leases:
        report, work = fleet.guard_reports.get(lease.intent_id), fleet.workload(lease.slot.workload)
        if report is None or report.acceptance is None or work is None or lease.is_held or lease.guard_run is None:
            continue
        after = _read(lease, report, report.acceptance)
        if acceptance_verdict.lacking(report.acceptance, lease):
            if not acceptance_verdict.is_new(fleet, lease):
                continue
            after = replace(after, **UNKNOWN)
        elif acceptance_verdict.difference(report.acceptance, lease, work):
            continue
        before = fleet.host_checks.get(lease.lease_id)
        if before is None or replace(after, checked_at=before.checked_at) != before:
            yield HostChecked(after)


def _seen_gpu(lease: Lease, found: AcceptanceReport) -> str | None:
    names = (gpu.name for gpu in found.gpus if gpu.name)
    return acceptance_verdict.other_card(found, lease) or next(names, None)


def _read(lease: Lease, report: GuardReport, found: AcceptanceReport) -> HostCheck:
    limits = [(gpu.power_limit_watts, gpu.power_default_watts) for gpu in found.gpus]
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
        matmul_tflops=found.matmul_tflops,
        copy_to_gpu_gbps=found.copy_to_gpu_gbps,
        copy_from_gpu_gbps=found.copy_from_gpu_gbps,
        disk_write_mbps=found.disk_write_mbps,
        power_share=min(shares, default=None),
        seen_gpus=found.gpu_count,
        seen_gpu=_seen_gpu(lease, found),
    )
