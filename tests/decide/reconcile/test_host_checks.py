"""A check is recorded once, and only of hosts that are as rented."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.reconcile.guards import host_checks
from agent.domain.fleet import Fleet
from agent.domain.record.host_check import HostCheck
from agent.domain.work.acceptance_report import AcceptanceReport, GpuReport, ScriptReport
from agent.domain.work.guard_report import GuardReport
from agent.domain.work.guard_terms import Accept
from tests.support import builders

NOW = builders.NOW
HELD = builders.lease(vram_mb=24564, guard_run=1, run_since=NOW - timedelta(minutes=2), has_run=True, runs=1)
GPUS = (
    GpuReport(power_limit_watts=300.0, power_default_watts=450.0),
    GpuReport(power_limit_watts=450.0),
    GpuReport(power_limit_watts=450.0, power_default_watts=5e-324),
)
REPORT = AcceptanceReport(
    version=1, lease=HELD.intent_id, gpus=GPUS, matmul_tflops=150.0, copy_to_gpu_gbps=24.0, disk_write_mbps=900.0
)


def fleet(report: AcceptanceReport | None = REPORT, *known: HostCheck, **changes: Any) -> Fleet:
    made = builders.guarded()
    assert made.guard is not None
    work = replace(made, guard=replace(made.guard, accept=Accept.TELL))
    values = {"workloads": (work,), "leases": (HELD,), "host_checks": {each.lease_id: each for each in known}}
    reports = {HELD.intent_id: GuardReport(NOW, acceptance=report)}
    return builders.fleet(**{**values, "guard_reports": reports, **changes})


def test_the_figures_are_kept_beside_what_the_market_promised() -> None:
    (fact,) = host_checks.new_checks(fleet())
    check = fact.after
    assert (check.lease_id, check.host, check.gpu, check.gpus) == (HELD.lease_id, HELD.host, HELD.gpu, HELD.gpus)
    assert (check.dlperf, check.owner_id, check.checked_at) == (HELD.dlperf, HELD.owner_id, NOW)
    assert (check.matmul_tflops, check.copy_to_gpu_gbps, check.copy_from_gpu_gbps) == (150.0, 24.0, None)
    assert check.disk_write_mbps == 900.0
    assert check.power_share == pytest.approx(2 / 3)


def linked(generation: int | None, width: int | None, events: str | None = None, **changes: Any) -> GpuReport:
    return GpuReport(
        pcie_generation=generation,
        pcie_width=width,
        clock_events=events,
        **{"pcie_generation_most": 4, "pcie_width_most": 16, **changes},
    )


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ((linked(4, 16, "0x0000000000000000"), linked(3, 8, "0x24")), (3, 8, 0.25, 0x24)),
        ((linked(4, 16), linked(None, None)), (4, 16, 1.0, None)),
        ((linked(10**9, 10**9, "0xffffffffffffffff"),), (None, None, None, 0xFFFF)),
        ((linked(5, 16, "what"),), (5, 16, 1.0, None)),
        ((), (None, None, None, None)),
    ],
)
def test_links_and_clocks_are_kept_as_they_were_while_the_gpus_copied(
    gpus: tuple[GpuReport, ...], expected: tuple[Any, ...]
) -> None:
    report = AcceptanceReport(version=1, lease=HELD.intent_id, gpus=gpus, matmul_tflops=1.0, is_under_load=True)
    ((busy,), (idle,)) = (
        list(host_checks.new_checks(fleet(each)))
        for each in (report, AcceptanceReport(version=1, lease=HELD.intent_id, gpus=gpus, matmul_tflops=1.0))
    )
    kept = busy.after
    assert (kept.pcie_generation, kept.pcie_width, kept.pcie_share, kept.clock_events) == expected
    assert (idle.after.pcie_generation, idle.after.pcie_share, idle.after.clock_events) == (None, None, None)


def test_a_check_is_written_once_and_again_where_a_later_start_finds_another() -> None:
    (fact,) = host_checks.new_checks(fleet())
    known = replace(fact.after, checked_at=NOW - timedelta(hours=1))
    assert list(host_checks.new_checks(fleet(REPORT, known))) == []
    (later,) = host_checks.new_checks(fleet(AcceptanceReport(version=1, lease="", matmul_tflops=90.0), known))
    assert later.after.matmul_tflops == 90.0


@pytest.mark.parametrize(
    "made",
    [
        fleet(None),
        fleet(leases=(msgspec.structs.replace(HELD, is_held=True),)),
        fleet(leases=(msgspec.structs.replace(HELD, guard_run=None),)),
    ],
    ids=["nothing", "held", "no guard"],
)
def test_what_is_no_check_of_what_was_rented_teaches_nothing(made: Fleet) -> None:
    assert list(host_checks.new_checks(made)) == []


def test_of_a_host_whose_gpus_are_not_there_only_what_was_seen_is_kept() -> None:
    others = (GpuReport(name="NVIDIA GeForce " + HELD.gpu), GpuReport(name="NVIDIA GeForce GTX 1070"))
    for report, gpus, name in (
        (AcceptanceReport(version=1, lease="", gpu_count=0, matmul_tflops=150.0), 0, None),
        (AcceptanceReport(version=1, lease="", gpus=others, disk_write_mbps=900.0), None, "NVIDIA GeForce GTX 1070"),
    ):
        (fact,) = host_checks.new_checks(fleet(report))
        assert (fact.after.seen_gpus, fact.after.seen_gpu) == (gpus, name)
        assert (fact.after.matmul_tflops, fact.after.disk_write_mbps, fact.after.power_share) == (None, None, None)


@pytest.mark.parametrize(
    ("seen", "defect", "is_by_script"),
    [
        ({"gpus": (GpuReport(memory_mb=8000.0),)}, "a GPU has 8000 MB of memory instead of 24564", False),
        ({"gpus": (GpuReport(uncorrected_errors=1),)}, "1 uncorrected errors of GPU memory", False),
        ({"cuda_starts": False, "script": ScriptReport(code=1)}, "CUDA does not start: it gives no reason", False),
        ({"cuda_starts": True, "script": ScriptReport(code=1)}, "accept_script ended with exit code 1", True),
        ({"gpus": (GpuReport(memory_mb=24564.0),), "cuda_starts": True}, "", False),
        ({"gpus": (GpuReport(memory_mb=24564.0),), "cuda_starts": True, "script": ScriptReport(code=0)}, "", True),
        ({"gpus": (GpuReport(memory_mb=24564.0),)}, None, False),
    ],
)
def test_a_defect_of_a_host_is_kept_without_its_figures_and_so_is_that_it_has_none(
    seen: dict[str, Any], defect: str | None, *, is_by_script: bool
) -> None:
    made = builders.guarded()
    assert made.guard is not None
    work = replace(made, guard=replace(made.guard, accept=Accept.REJECT, accept_script="python3 mine.py"))
    assert work.guard is not None
    report = AcceptanceReport(version=1, lease="", matmul_tflops=150.0, **seen)
    (fact,) = host_checks.new_checks(fleet(report, workloads=(work,)))
    assert (fact.after.defect, fact.after.script) == (defect, work.guard.script_digest if is_by_script else None)
    assert fact.after.matmul_tflops == (None if defect else 150.0)
    late = (msgspec.structs.replace(HELD, run_since=NOW - timedelta(minutes=16)),)
    assert bool(list(host_checks.new_checks(fleet(report, workloads=(work,), leases=late)))) is not bool(defect)


def test_a_lack_that_is_told_once_the_lease_may_hold_work_is_not_kept() -> None:
    # Another container of the workload has the bucket's key, and may forge it at any time.
    report = AcceptanceReport(version=1, lease="", gpu_count=0)
    for changes in ({"run_since": NOW - timedelta(minutes=16)}, {"runs": 2}, {"offer_id": ""}):
        assert list(host_checks.new_checks(fleet(report, leases=(msgspec.structs.replace(HELD, **changes),)))) == []


def test_what_a_sound_host_showed_is_kept_beside_its_figures() -> None:
    sound = AcceptanceReport(version=1, lease="", gpu_count=1, gpus=(GpuReport(name=HELD.gpu),), matmul_tflops=150.0)
    (fact,) = host_checks.new_checks(fleet(sound))
    assert (fact.after.seen_gpus, fact.after.seen_gpu, fact.after.matmul_tflops) == (1, HELD.gpu, 150.0)
