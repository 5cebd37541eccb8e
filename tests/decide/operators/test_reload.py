"""The effects of new files on running leases: refusals with their fix, leases that go on, leases that move."""

import dataclasses
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.limits import limits
from agent.decide.operators import reload, slotless_leases
from agent.decide.operators.reload import After
from agent.domain.fleet import Spend
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import LeaseState
from agent.domain.work import kept_terms
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.run_times.run_window import WindowNow, WindowRule
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Checkpoint, CheckpointPlace, OnChange, Workload, WorkloadKind
from tests.support.builders import NOW, guarded, intent, lease, per_hour, requirements, slot, usd, workload

HELD = lease()


def made(name: str = "train", **changes: Any) -> Workload:
    """Return a workload that may have an old name in `was`, and `on_change`."""
    return dataclasses.replace(workload(name), **changes)


def after(*works: Workload, caps: limits.Limits | None = None, markets: tuple[str, ...] = ("vast",)) -> After:
    """Return what new files say."""
    return After(works or (workload(),), frozenset(markets), caps or limits.Limits())


def codes(files: After, *leases: Any, spent: str = "0", before: limits.Limits | None = None) -> list[str]:
    """Return the codes of the findings that refuse new files."""
    held = leases or (HELD,)
    standing = reload.present(held, (), Spend(usd(spent), usd(spent)), NOW)
    return [found.code for found in reload.findings(files, held, standing, before) if found.is_refusal]


def test_files_that_keep_every_lease_are_taken() -> None:
    assert codes(after()) == []


@pytest.mark.parametrize(
    ("files", "code"),
    [
        (after(workload("other")), "workload_gone"),
        (after(made("other", was="another")), "workload_gone"),
        (after(made("other", was="train"), workload("train", slots=1)), ""),
        (after(made("other", was="train")), ""),
        (after(markets=()), "market_gone"),
        (after(caps=limits.Limits(per_hour=per_hour("0.10"))), "under_burn"),
        (after(caps=limits.Limits(instances=0)), "under_burn"),
        (after(caps=limits.Limits(per_day=usd("1"))), "under_burn"),
        (after(caps=limits.Limits(per_month=usd("1"))), "under_burn"),
        (after(caps=limits.Limits(per_instance_hour=per_hour("0.10"))), "under_burn"),
        (after(caps=limits.Limits(per_hour=per_hour("1"), per_day=usd("9"), instances=1)), ""),
    ],
)
def test_what_is_refused(files: After, code: str) -> None:
    assert codes(files, spent="2") == ([code] if code else [])


def test_fewer_slots_are_refused_while_one_of_them_is_held() -> None:
    second = lease(2, slot=slot(index=1))
    assert codes(after(workload(slots=1)), HELD, second) == ["fewer_slots"]
    assert codes(after(workload(slots=1)), HELD) == []


def test_no_slots_are_refused_while_a_slot_is_held_as_fewer_are() -> None:
    (found,) = reload.findings(after(workload(slots=0)), (HELD,), reload.present((HELD,), (), Spend(), NOW), None)
    assert found.is_refusal
    assert found.sentence.startswith("has no slot 0 any more, but ")
    assert found.sentence.endswith("first `gpubid drain train/0`, then `gpubid release train/0`")
    assert codes(after(workload(slots=0)), lease(state=LeaseState.RELEASING)) == []


@pytest.mark.parametrize("change", [{"is_held": True}, {"state": LeaseState.RELEASING}])
def test_what_is_held_or_leaving_refuses_nothing(change: dict[str, Any]) -> None:
    assert codes(after(workload("other")), lease(**change)) == []


@pytest.mark.parametrize("change", [{}, {"is_held": True}, {"state": LeaseState.RELEASING}], ids=str)
def test_every_open_lease_of_a_market_that_is_gone_refuses_a_reload_and_a_start(change: dict[str, Any]) -> None:
    files, billing = after(markets=("runpod",)), lease(**change)
    assert codes(files, billing) == ["market_gone"]
    (found,) = reload.orphaning(files, (billing,))
    assert "remove it once `gpubid fleet` shows that lease no more" in found.sentence
    assert ("`gpubid release" in found.sentence) == (billing.state is not LeaseState.RELEASING)
    assert reload.orphaning(files, (lease(state=LeaseState.ENDED),)) == ()


@pytest.mark.parametrize("state", IntentState)
def test_an_unsettled_rent_on_a_market_that_is_gone_refuses_a_start(state: IntentState) -> None:
    files, rent = after(markets=("runpod",)), intent(state=state)
    found = [each.code for each in reload.orphaning(files, (), (rent,))]
    assert found == (["market_gone"] if rent.is_open else [])


@pytest.mark.parametrize("state", IntentState)
@pytest.mark.parametrize(
    ("files", "code"),
    [
        (after(workload("other")), "workload_gone"),
        (after(workload(slots=0)), "fewer_slots"),
        (after(made("other", was="train", slots=0)), "fewer_slots"),
        (after(made("other", was="train")), ""),
    ],
)
def test_an_unsettled_rent_without_its_slot_refuses_a_reload_and_no_start(
    state: IntentState, files: After, code: str
) -> None:
    rent = intent(state=state)
    found = reload.findings(files, (), reload.present((), (rent,), Spend(), NOW), None, (), (rent,))
    assert [each.code for each in found] == ([code] if code and rent.is_open else [])
    assert reload.orphaning(files, (), (rent,)) == ()


def test_an_open_intent_follows_its_workload_to_a_new_name_unless_its_slot_is_blocked_there() -> None:
    renamed = made("other", was="train")
    rent, settled = intent(), intent(2, state=IntentState.CONFIRMED)
    assert [str(each.slot) for each in reload.renamed_intents((rent, settled), (renamed,))] == ["other/0"]
    assert reload.renamed_intents((rent,), (renamed, workload())) == (), "the old name is another workload"
    blocking = intent(3, slot=slot("other"))
    assert reload.renamed_intents((rent, blocking), (renamed,)) == ()


@pytest.mark.parametrize("work", [workload("other"), workload(slots=0)], ids=["gone", "fewer"])
def test_a_lease_without_a_slot_is_held(work: Workload) -> None:
    one, files = lease(), (work,)
    held = slotless_leases.held(one, files)
    assert held == msgspec.structs.replace(one, is_held=True)
    assert slotless_leases.held(held, files) == held
    assert f"`gpubid release {one.lease_id}`" in slotless_leases.event(held, NOW).reason


@pytest.mark.parametrize(
    "change", [{}, {"has_failed": True}, {"state": LeaseState.RELEASING}, {"state": LeaseState.ENDED}], ids=str
)
def test_a_lease_with_a_slot_or_on_its_way_out_is_not_held(change: dict[str, Any]) -> None:
    one = lease(**change)
    assert slotless_leases.held(one, (workload(),)) == one
    assert not change or slotless_leases.held(one, ()) == one


def test_a_cap_that_stays_as_it_was_refuses_nothing() -> None:
    caps = limits.Limits(per_day=usd("1"), per_hour=per_hour("0.10"), instances=0)
    assert codes(after(caps=caps), spent="2", before=caps) == []


def test_a_refusal_names_the_slot_that_matters_least() -> None:
    first, second = lease(slot=slot("low")), lease(2, slot=slot("high"))
    files = after(made("low", priority=1), made("high", priority=5), caps=limits.Limits(per_hour=per_hour("0.3")))
    standing = reload.present((first, second), (), Spend(), NOW)
    (found,) = reload.findings(files, (first, second), standing, None)
    assert found.is_refusal
    assert "gpubid pause low/0" in found.sentence


def test_a_start_minds_only_what_would_be_orphaned() -> None:
    files = after(caps=limits.Limits(instances=0, per_day=usd("0")))
    assert reload.orphaning(files, (HELD,)) == ()
    assert [found.code for found in reload.orphaning(after(workload("other")), (HELD,))] == ["workload_gone"]


SPEC = reload.spec_digest(workload())
OLD = lease(spec_digest=SPEC)


@pytest.mark.parametrize(
    "change", [{"image": "ubuntu:24.04"}, {"disk_gb": 99.0}, {"requirements": requirements(gpus=2)}], ids=str
)
def test_a_changed_spec_moves_a_lease_only_when_the_workload_says_so(change: dict[str, Any]) -> None:
    keeps, leaves = made(**change), made(on_change=OnChange.MOVE, **change)
    assert not reload.moves(OLD, keeps)
    assert reload.moves(OLD, leaves)
    assert not reload.moves(msgspec.structs.replace(OLD, state=LeaseState.PAUSED), leaves)
    assert not reload.moves(msgspec.structs.replace(OLD, spec_digest=""), leaves)
    standing = reload.present((OLD,), (), Spend(), NOW)
    (kept,) = reload.findings(after(keeps), (OLD,), standing, None)
    (left,) = reload.findings(after(leaves), (OLD,), standing, None)
    assert not kept.is_refusal
    assert "goes on with the old" in kept.sentence
    assert "moves to a new one" in left.sentence


def test_a_changed_spec_that_does_not_move_a_lease_says_what_would() -> None:
    new: dict[str, Any] = {"image": "ubuntu:24.04", "on_change": OnChange.MOVE}
    paused = msgspec.structs.replace(OLD, state=LeaseState.PAUSED)
    on_disk = made(checkpoint=Checkpoint(place=CheckpointPlace.DISK), **new)
    for held, work, says in (
        (OLD, on_disk, "its disk may hold the only checkpoint"),
        (OLD, on_disk, "may_lose_disk = true lets it move"),
        (paused, made(**new), "moves to a new one once it runs again"),
    ):
        assert not reload.moves(held, work)
        (found,) = reload.findings(after(work), (held,), reload.present((held,), (), Spend(), NOW), None)
        assert says in found.sentence
        assert 'on_change = "move"' not in found.sentence, "it is set already"


def test_what_changes_no_spec_moves_nothing() -> None:
    other = made(on_change=OnChange.MOVE, max_price=per_hour("2"), strategy="ondemand", environment=(("A", "1"),))
    assert not reload.moves(OLD, other)


def test_a_lease_follows_its_workload_to_a_new_name_and_learns_its_spec() -> None:
    renamed = made("other", was="train")
    held = reload.under_present_name(HELD, (renamed,))
    assert held.slot == slot("other")
    assert held.spec_digest == reload.spec_digest(renamed)
    assert reload.under_present_name(held, (renamed,)) == held
    assert reload.under_present_name(HELD, (workload("third"),)) == HELD


def test_a_lease_without_a_spec_learns_that_of_its_run_and_not_that_of_a_file_that_was_changed_since() -> None:
    found = lease(guard_run=1)
    begun = [GuardRun(found.slot, 1, "train", SPEC, NOW), GuardRun(found.slot, 2, "train", "later", NOW)]
    changed = made(image="ubuntu:24.04", on_change=OnChange.MOVE)
    stepped = reload.under_present_name(found, (changed,), begun)
    assert stepped.spec_digest == SPEC
    assert reload.moves(stepped, changed)
    assert not reload.moves(reload.under_present_name(found, (workload(),), begun), workload())
    renamed = made("other", was="train", image="ubuntu:24.04")
    assert reload.under_present_name(found, (renamed,), begun).spec_digest == SPEC
    assert reload.under_present_name(lease(), (changed,), begun).spec_digest == reload.spec_digest(changed)


GUARDED = guarded(kind=WorkloadKind.BATCH)


def with_guard(was: str | None = None, place: dict[str, Any] | None = None, **changes: Any) -> Workload:
    """Return the guarded batch with other terms; `place` changes its bucket, `was` renames it."""
    assert GUARDED.guard is not None
    assert GUARDED.guard.bucket is not None
    bucket = dataclasses.replace(GUARDED.guard.bucket, **(place or {}))
    terms = dataclasses.replace(GUARDED.guard, **{"bucket": bucket, **changes})
    work = dataclasses.replace(GUARDED, guard=terms)
    return work if was is None else dataclasses.replace(work, name="other", was=was)


def guard_codes(work: Workload, held: Any, before: tuple[Workload, ...] = (GUARDED,)) -> list[str]:
    """Return the codes of the findings that refuse a change of the guarded batch."""
    found = reload.findings(after(work), (held,), reload.present((held,), (), Spend(), NOW), None, before)
    fix = "then `gpubid release train/0`, and `gpubid resume train/0` after the reload"
    assert all(fix in each.sentence for each in found if each.is_refusal)
    return [each.code for each in found if each.is_refusal]


UNHEARD = [
    (dataclasses.replace(GUARDED, guard=None), "guard_gone"),
    (with_guard(bucket=None), "guard_gone"),
    (with_guard(done_codes=(3,)), "fewer_done_codes"),
    (with_guard(was="train", done_codes=()), "fewer_done_codes"),
    (dataclasses.replace(GUARDED, kind=WorkloadKind.SERVICE), "guard_kind"),
    (with_guard(place={"endpoint": "https://other"}), "guard_moved"),
    (with_guard(place={"name": "other-runs"}), "guard_moved"),
    (with_guard(place={"prefix": "other"}), "guard_moved"),
]


@pytest.mark.parametrize(("work", "code"), UNHEARD)
def test_what_a_guard_at_work_would_not_hear_of_is_refused(work: Workload, code: str) -> None:
    assert guard_codes(work, lease(guard_run=1)) == [code]
    assert guard_codes(work, lease(guard_run=1, state=LeaseState.PAUSED)) == [code]
    assert guard_codes(work, lease(guard_run=1, state=LeaseState.RELEASING)) == []
    assert guard_codes(work, lease(guard_run=1, state=LeaseState.ENDED)) == []
    assert guard_codes(work, lease(guard_run=None)) == []


@pytest.mark.parametrize(
    "work", [GUARDED, with_guard(was="train"), with_guard(done_codes=(0, 3)), with_guard(place={"credential": "new"})]
)
def test_what_a_guard_need_not_hear_of_is_taken(work: Workload) -> None:
    assert guard_codes(work, lease(guard_run=1)) == []


def test_a_guard_that_is_gone_is_seen_without_the_files_before() -> None:
    held, bare = lease(guard_run=1), after(dataclasses.replace(GUARDED, guard=None))
    assert [found.code for found in reload.orphaning(bare, (held,))] == ["guard_gone"]
    assert guard_codes(dataclasses.replace(GUARDED, guard=None), held, before=()) == ["guard_gone"]
    assert guard_codes(with_guard(done_codes=(3,)), held, before=()) == []


@pytest.mark.parametrize(("work", "code"), UNHEARD)
def test_a_restart_sees_the_same_by_the_terms_that_the_lease_was_rented_with(work: Workload, code: str) -> None:
    held = kept_terms.recorded(lease(guard_run=1), GUARDED)
    assert [found.code for found in reload.orphaning(after(work), (held,))] == [code]
    assert guard_codes(work, held, before=()) == [code]
    assert guard_codes(work, held, before=(work,)) == [code], "the files before may be edited ones too"
    assert guard_codes(GUARDED, held, before=(work,)) == []
    unread = msgspec.structs.replace(held, guard_terms='{"of": "a later release"}')
    assert guard_codes(work, unread, before=()) == (["guard_gone"] if code == "guard_gone" else [])


def test_a_guard_that_reports_by_rclone_hears_of_nothing_and_refuses_nothing() -> None:
    by_rclone = with_guard(bucket=None, rclone="nas:runs")
    held = lease(guard_run=1)
    assert guard_codes(by_rclone, held, before=(by_rclone,)) == []
    assert guard_codes(dataclasses.replace(GUARDED, guard=None), held, before=(by_rclone,)) == []
    assert guard_codes(by_rclone, held, before=()) == []
    assert guard_codes(by_rclone, held) == ["guard_gone"], "this one reports in a bucket"


def test_terms_are_recorded_once_and_only_where_a_guard_reports() -> None:
    held = kept_terms.recorded(lease(guard_run=1), GUARDED)
    assert kept_terms.read(held) == kept_terms.of(GUARDED)
    assert kept_terms.recorded(held, with_guard(done_codes=(3,))) == held
    for bare in (lease(), kept_terms.recorded(lease(guard_run=1), with_guard(bucket=None))):
        assert kept_terms.recorded(bare, workload()).guard_terms is None


def test_terms_that_nobody_recorded_at_the_rent_stay_unknown_and_the_file_of_the_rent_is_taken_back() -> None:
    older, edited = lease(guard_run=1, spec_digest="known"), with_guard(done_codes=(3,))
    stepped = reload.under_present_name(older, (edited,))
    assert stepped == older
    assert reload.under_present_name(lease(guard_run=1), (edited,)).guard_terms is None
    assert guard_codes(GUARDED, stepped, before=()) == []
    assert guard_codes(GUARDED, stepped, before=(GUARDED,)) == []
    assert guard_codes(edited, stepped, before=(GUARDED,)) == ["fewer_done_codes"]


def test_a_limit_that_ended_running_leases_at_once_is_refused() -> None:
    ran = lease(state=LeaseState.RUNNING, ran_micros=3 * 3_600_000_000)
    work = made(max_running=(RunningLimit(timedelta(hours=12)),))
    files = dataclasses.replace(after(work), ran_micros={"train": 9 * 3_600_000_000})
    assert codes(files, ran) == ["would_end"]
    (found,) = reload.findings(files, (ran,), reload.present((ran,), (), Spend(), NOW), None)
    told = "12 h is no more than the 12 h that train has run: it would end 1 running lease; first `gpubid pause train`"
    assert (found.key, found.sentence.startswith(told)) == ("workloads.train.max_running", True)
    assert codes(dataclasses.replace(files, ran_micros={"train": 8 * 3_600_000_000}), ran) == []
    assert codes(files, lease(state=LeaseState.PAUSED, paused_by_us=True)) == [], "what is paused goes on with nothing"
    soon = dataclasses.replace(after(made(max_running=(RunningLimit(timedelta(hours=3, minutes=2)),))), now=NOW)
    metered = msgspec.structs.replace(ran, accrued_until=NOW - timedelta(minutes=4))
    assert codes(soon, metered) == ["would_end"], "four minutes are not metered yet"
    standing = reload.present((ran,), (), Spend(), NOW)
    assert reload.findings(files, (ran,), standing, None, (work,)) == (), "it ends already under the present file"


def test_windows_that_are_closed_now_are_refused_while_leases_run() -> None:
    night = WindowRule("0 20 * * 1-5", timedelta(hours=12), "Europe/Berlin")
    work, ran = made(windows=(night,)), lease(state=LeaseState.RUNNING)
    shut = WindowNow(is_open=False, until=NOW + timedelta(hours=5), spoken="Mon 20:00 Europe/Berlin")
    files = dataclasses.replace(after(work), windows={"train": shut})
    standing = reload.present((ran,), (), Spend(), NOW)
    (found,) = reload.findings(files, (ran,), standing, None, (made(),))
    told = "are closed now: the workload waits for its window until Mon 20:00 Europe/Berlin, which would end 1 running "
    assert (found.key, found.code, found.sentence.startswith(told)) == ("workloads.train.windows", "would_end", True)
    assert (
        "lease; first `gpubid pause train`, or `gpubid drain train` and then `gpubid release train`; " in found.sentence
    )
    is_open = dataclasses.replace(files, windows={"train": WindowNow(is_open=True, until=NOW)})
    assert codes(is_open, ran) == []
    assert codes(files, lease(state=LeaseState.PAUSED, paused_by_us=True)) == []
    assert reload.findings(files, (ran,), standing, None, (work,)) == (), "the present file has the same windows"


def test_a_limit_of_each_lease_counts_that_lease_alone() -> None:
    ran = lease(state=LeaseState.RUNNING, ran_micros=3 * 3_600_000_000)
    work = made(max_running=(RunningLimit(timedelta(hours=3), LimitOf.LEASE, AtLimit.MOVE),))
    assert codes(after(work), ran) == ["would_end"]
    longer = made(max_running=(RunningLimit(timedelta(hours=4), LimitOf.LEASE, AtLimit.MOVE),))
    assert codes(dataclasses.replace(after(longer), ran_micros={"train": 9 * 3_600_000_000}), ran) == []


@pytest.mark.parametrize(
    ("changes", "old", "is_noted"),
    [
        ({"ran_micros": 1}, Readiness(), True),
        ({"ran_micros": 1}, Readiness(ReadySign.LOG, line="up"), False),
        ({}, Readiness(), False),
        ({"ran_micros": 1, "ready_since": NOW}, Readiness(ReadySign.LOG, line="down"), False),
        ({"ran_micros": 1, "state": LeaseState.PAUSED}, Readiness(), False),
    ],
    ids=["new", "the same", "before it worked", "ready by another", "paused"],
)
def test_a_new_sign_of_readiness_is_noted_for_a_lease_that_works_without_it(
    changes: dict[str, Any], old: Readiness, *, is_noted: bool
) -> None:
    files, held = after(workload(ready=Readiness(ReadySign.LOG, line="up"))), lease(**changes)
    standing = reload.present((held,), (), Spend(usd("0"), usd("0")), NOW)
    findings = reload.findings(files, (held,), standing, None, (workload(ready=old),))
    assert [(found.code, found.is_refusal) for found in findings] == ([("new_sign", False)] if is_noted else [])
