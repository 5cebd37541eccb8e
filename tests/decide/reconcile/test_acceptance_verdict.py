"""A host that is not as rented: a failed start in its first minutes, an alert after them, nothing on a guess."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import slot_releases
from agent.decide.facts import Alert, LeaseChanged
from agent.decide.moves import cooldowns_after_writes
from agent.decide.reconcile import orphans, reconcile, workload_end
from agent.decide.reconcile.guards import acceptance_verdict
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market.gpu import GpuModel
from agent.domain.market.instance import InstanceState
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import OperatorHold
from agent.domain.record.host_check import HostCheck
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.work.acceptance_report import AcceptanceReport, GpuReport, ScriptReport
from agent.domain.work.guard_report import GuardBeat, GuardEnd, GuardReport
from agent.domain.work.guard_terms import Accept
from agent.domain.work.workload import Requirements, Workload, WorkloadKind
from tests.support import builders

NOW = builders.NOW
CARD = GpuReport(name="NVIDIA GeForce RTX 4090", memory_mb=24_564.0)
HELD = builders.lease(
    guard_run=1, run_since=NOW - timedelta(minutes=2), state_since=NOW - timedelta(minutes=2), has_run=True, runs=1
)
SOUND = AcceptanceReport(version=1, lease=HELD.intent_id, tool="ok", gpu_count=HELD.gpus, gpus=(CARD,) * HELD.gpus)
LYING = AcceptanceReport(version=1, lease=HELD.intent_id, tool="ok", gpu_count=HELD.gpus - 1)


def work(accept: Accept = Accept.REJECT, **changes: Any) -> Workload:
    made = builders.guarded(**changes)
    assert made.guard is not None
    return replace(made, guard=replace(made.guard, accept=accept, accept_script="check"))


def fleet(report: AcceptanceReport | None, held: Lease = HELD, wanted: Workload | None = None, **told: Any) -> Fleet:
    state = InstanceState.EXITED if held.state is LeaseState.EXITED else InstanceState.RUNNING
    view = builders.view(instances=(builders.instance(state=state),))
    reports = {held.intent_id: GuardReport(NOW, acceptance=report, **told)}
    return builders.fleet(workloads=(wanted or work(),), leases=(held,), markets={"vast": view}, guard_reports=reports)


def changes(made: Fleet) -> list[LeaseChanged]:
    facts = reconcile.reconcile(made, Memory()).facts
    return [fact for fact in facts if isinstance(fact, LeaseChanged) and fact.kind is not None]


def told(made: Fleet) -> list[Alert]:
    facts = reconcile.reconcile(made, Memory()).facts
    return [fact for fact in facts if isinstance(fact, Alert) and fact.kind is EventKind.ALERT_NOT_AS_RENTED]


def test_the_card_of_the_builders_is_the_one_that_was_rented() -> None:
    assert HELD.gpu == "RTX 4090"
    assert changes(fleet(SOUND)) == []
    assert told(fleet(SOUND)) == []


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (LYING, f"{HELD.gpus - 1} of {HELD.gpus} GPUs are there"),
        (
            AcceptanceReport(version=1, lease="", gpus=(GpuReport(name="NVIDIA GeForce RTX 3090"),)),
            "its GPU is NVIDIA GeForce RTX 3090 and not RTX 4090",
        ),
        (
            AcceptanceReport(version=1, lease="", gpus=(CARD, GpuReport(memory_mb=11_000.0))),
            "a GPU has 11000 MB of memory instead of 24000",
        ),
        (
            AcceptanceReport(version=1, lease="", gpus=(CARD, GpuReport(uncorrected_errors=2))),
            "2 uncorrected errors of GPU memory",
        ),
        (
            AcceptanceReport(version=1, lease="", cuda_starts=False, cuda_error="cuInit answers 999"),
            "CUDA does not start: cuInit answers 999",
        ),
        (
            AcceptanceReport(version=1, lease="", script=ScriptReport(3, "too slow")),
            "accept_script ended with exit code 3: too slow",
        ),
        (AcceptanceReport(version=1, lease="", script=ScriptReport()), "accept_script did not end in time"),
    ],
)
def test_a_host_that_is_not_what_was_rented_is_a_failed_start(report: AcceptanceReport, why: str) -> None:
    wanted = work(requirements=Requirements(min_vram_mb=24_000))
    (change,) = changes(fleet(report, wanted=wanted))
    assert (change.kind, change.after.has_failed) == (EventKind.LEASE_NOT_READY, True)
    assert change.after.end_reason == f"not_as_rented: {why}"
    assert change.cooldown is not None
    assert change.cooldown.key == str(HELD.host)
    (release,) = slot_releases.releases(fleet(report, change.after, wanted))
    assert release.reason.code in cooldowns_after_writes.FAILED_STARTS
    assert why in release.reason.sentence
    assert told(fleet(report, wanted=wanted)) == []


def test_the_memory_of_the_offer_counts_before_that_of_the_file() -> None:
    half = AcceptanceReport(version=1, lease="", gpus=(GpuReport(name="NVIDIA A100-SXM4-40GB", memory_mb=40_960.0),))
    rented = msgspec.structs.replace(HELD, gpu=GpuModel("A100 SXM4"))
    asked = work(requirements=Requirements(min_vram_mb=40_000))
    assert changes(fleet(half, rented, asked)) == []
    (change,) = changes(fleet(half, msgspec.structs.replace(rented, vram_mb=81_920), asked))
    assert change.after.end_reason == "not_as_rented: a GPU has 40960 MB of memory instead of 81920"
    (change,) = changes(fleet(half, rented, work(requirements=Requirements(min_vram_mb=80_000))))
    assert change.after.end_reason == "not_as_rented: a GPU has 40960 MB of memory instead of 80000"


def test_it_counts_as_a_failed_start_of_the_workload() -> None:
    made = fleet(LYING)
    (mark,) = workload_end.marks(made, changes(made))
    assert isinstance(mark.record, Tally)
    assert mark.record.counted is Counted.FAILED_START


@pytest.mark.parametrize(
    "report",
    [
        None,
        AcceptanceReport(version=1, lease=""),
        AcceptanceReport(version=1, lease="", tool="failed"),
        AcceptanceReport(version=1, lease="", cuda_error="libcuda.so.1 is not there", script=ScriptReport(0, "well")),
        AcceptanceReport(version=1, lease="", gpu_count=HELD.gpus + 4, gpus=(GpuReport(), GpuReport(is_split=True))),
        AcceptanceReport(version=1, lease="", gpus=(GpuReport(name="Graphics Device", uncorrected_errors=0),)),
    ],
)
def test_what_nobody_knows_is_never_held_against_a_host(report: AcceptanceReport | None) -> None:
    made = fleet(report, wanted=work(requirements=Requirements(min_vram_mb=24_000)))
    assert changes(made) == []
    assert told(made) == []


def test_a_container_that_ended_after_hours_is_not_given_up_for_its_host() -> None:
    ended = msgspec.structs.replace(HELD, state=LeaseState.EXITED, run_since=None)
    soon, late = (
        msgspec.structs.replace(ended, opened_at=NOW - timedelta(minutes=9)),
        msgspec.structs.replace(ended, opened_at=NOW - timedelta(hours=5)),
    )
    assert [change.after.has_failed for change in changes(fleet(LYING, soon))] == [True]
    assert changes(fleet(LYING, late)) == []


@pytest.mark.parametrize(
    "held",
    [
        msgspec.structs.replace(HELD, run_since=NOW - acceptance_verdict.LATEST - timedelta(seconds=1)),
        msgspec.structs.replace(HELD, runs=2),
    ],
    ids=["late", "second stretch"],
)
def test_a_lease_that_holds_work_is_kept_and_told(held: Lease) -> None:
    assert changes(fleet(LYING, held)) == []
    (alert,) = told(fleet(LYING, held))
    assert alert.sentence.endswith(
        f"as its guard says: {HELD.gpus - 1} of {HELD.gpus} GPUs are there; `gpubid release {HELD.slot}` gives it up"
    )


def test_a_lease_that_was_thought_gone_after_hours_is_not_new_when_it_is_taken_back() -> None:
    thought_gone = NOW - timedelta(minutes=4)
    past = msgspec.structs.replace(
        HELD,
        runs=1,
        opened_at=NOW - timedelta(hours=10),
        accrued_until=thought_gone,
        ended_at=thought_gone,
        state=LeaseState.ENDED,
        end_reason="host_gone",
    )
    seen = builders.fleet(past_leases={past.instance_id: past})
    row = builders.instance(created_at=past.opened_at)
    back = orphans.lease_of(seen, row, past.slot, builders.intent(guard_run=1))
    assert (back.has_run, back.intent_id) == (True, HELD.intent_id)
    running = msgspec.structs.replace(back, state=LeaseState.RUNNING)
    assert changes(fleet(LYING, running)) == []
    assert len(told(fleet(LYING, running))) == 1


def test_a_workload_says_what_follows() -> None:
    off, tell = work(Accept.OFF), work(Accept.TELL)
    assert changes(fleet(LYING, wanted=off)) == []
    assert told(fleet(LYING, wanted=off)) == []
    assert changes(fleet(LYING, wanted=tell)) == []
    assert len(told(fleet(LYING, wanted=tell))) == 1


def test_done_work_counts_whatever_the_host_is() -> None:
    end = GuardEnd(version=1, lease=HELD.intent_id, code=0, done=True)
    assert changes(fleet(LYING, wanted=work(kind=WorkloadKind.BATCH), end=end)) == []


@pytest.mark.parametrize("report", [SOUND, LYING], ids=["sound", "lying"])
def test_work_that_failed_on_such_a_host_is_not_held_for_a_person(report: AcceptanceReport) -> None:
    beat = GuardBeat(version=1, sequence=3, lease=HELD.intent_id, phase="failed")
    end = GuardEnd(version=1, lease=HELD.intent_id, code=1)
    made = fleet(report, wanted=work(kind=WorkloadKind.BATCH), end=end, beat=beat, beat_changed_at=NOW)
    held = [mark for mark in workload_end.marks(made, changes(made)) if isinstance(mark.record, OperatorHold)]
    assert bool(held) is (report is SOUND)


def test_the_word_of_a_script_that_the_file_has_no_more_counts_for_nothing() -> None:
    plain = work()
    assert plain.guard is not None
    without = replace(plain, guard=replace(plain.guard, accept_script=""))
    report = AcceptanceReport(version=1, lease="", script=ScriptReport(3))
    assert len(changes(fleet(report, wanted=plain))) == 1
    assert changes(fleet(report, wanted=without)) == []


OWNER = "77"


def others(*speeds: float, owner: str = "") -> dict[str, HostCheck]:
    """Return checks of other hosts with the model that was rented."""
    made = [
        HostCheck(f"other-{number}", "vast", f"other-{number}", owner, HELD.gpu, 1, 100.0, NOW, speed)
        for number, speed in enumerate(speeds)
    ]
    return {each.lease_id: each for each in made}


@pytest.mark.parametrize(
    ("speed", "floor", "known", "is_rejected"),
    [
        (60.0, 0.7, others(100, 90, 110), True),
        (71.0, 0.7, others(100, 90, 110), False),
        (60.0, None, others(100, 90, 110), False),
        (None, 0.7, others(100, 90, 110), False),
        (60.0, 0.7, others(100, 110), False),
        (60.0, 0.7, others(100, 90, 110, 500, owner="one"), False),
        (60.0, 0.7, others(100, 90) | {"h": replace(others(110)["other-0"], host_id="h", owner_id=OWNER)}, False),
        (60.0, 0.7, {**others(100, 90), "its own": replace(others(500)["other-0"], host_id=HELD.host_id)}, False),
    ],
    ids=["slow", "fast enough", "no floor", "not measured", "two known", "one owner", "its own owner", "its own word"],
)
def test_a_slow_host_is_rejected_once_hosts_of_three_other_owners_are_known(
    speed: float | None, floor: float | None, known: dict[str, HostCheck], *, is_rejected: bool
) -> None:
    wanted = work()
    assert wanted.guard is not None
    wanted = replace(wanted, guard=replace(wanted.guard, accept_floor=floor))
    report = AcceptanceReport(version=1, lease=HELD.intent_id, matmul_tflops=speed)
    held = msgspec.structs.replace(HELD, owner_id=OWNER)
    made = msgspec.structs.replace(fleet(report, held, wanted), host_checks=known)
    found = changes(made)
    assert bool(found) is is_rejected
    if found:
        assert found[0].after.end_reason == (
            "not_as_rented: a GPU multiplies at 60.0 TFLOPS, 60% of the median of 3 other owners' RTX 4090; "
            "accept_floor is 0.7"
        )
