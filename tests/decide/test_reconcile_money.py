"""The charges of reconciliation: once, for the right span, and dated by the market's record."""

from datetime import timedelta
from typing import Any

import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.pricing import cooldowns
from agent.decide.reconcile import reconcile, workload_end
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.record.lease import Bills, Lease, LeaseState
from tests.support import builders
from tests.support.listings import CHECKPOINT, DENIED, NOW, ROW, RUNS, changed, missed, seen

WORK = builders.workload(slots=9, checkpoint=CHECKPOINT)
LATE = builders.ago(minutes=30)


def lost(held: Lease, state: InstanceState = InstanceState.PAUSED, **changes: Any) -> LeaseChanged:
    """Look twice at a lease that stopped, at `NOW` and one poll later."""
    view = {key: changes.pop(key) for key in ("events", "offers", "credit", "work") if key in changes}
    row = builders.instance(state=state, **changes)
    return changed(seen(held, row, at=1, memory=seen(held, row, **view).memory, **view))


def gpu_micros(fact: LeaseChanged) -> int:
    return sum(charge.gpu.micros for charge in fact.charges)


def test_traffic_is_charged_once_to_its_lease_and_day() -> None:
    prices = {"traffic_down_micros_per_gb": 1000, "traffic_up_micros_per_gb": 2000}
    row = builders.instance(traffic_down_gb=5.0, traffic_up_gb=3.0, **prices)
    fact = changed(seen(RUNS, row))
    [paid] = [charge for charge in fact.charges if charge.traffic.micros]
    assert (paid.lease_id, paid.day, paid.traffic.micros) == ("vast-1", NOW.date(), 11_000)
    assert (fact.after.traffic_down_gb, fact.after.traffic_up_gb) == (5.0, 3.0)
    assert seen(fact.after, row).facts == ()


def test_a_disk_that_costs_more_is_metered_at_its_new_price_from_there() -> None:
    dear = builders.per_hour("0.04")
    fact = changed(seen(builders.lease(accrued_until=LATE), builders.instance(disk_rate=dear)))
    assert sum(charge.disk.micros for charge in fact.charges) == 2_000
    assert (fact.after.disk_rate, fact.after.accrued_until) == (dear, NOW)


def test_metering_keeps_what_the_row_does_not_tell() -> None:
    kept: dict[str, Any] = {
        "ends_at": NOW + timedelta(days=3),
        "bid_since": LATE,
        "ready_since": LATE,
        "state_since": LATE,
    }
    held = builders.lease(accrued_until=LATE, idle_since=LATE, **kept)
    after = changed(seen(held, ROW)).after
    assert after.idle_since is None, "nobody knows whether its GPUs idle on"
    assert {name: getattr(after, name) for name in kept} == kept
    assert after.host_floor == held.host_floor
    told = builders.instance(floor=builders.per_hour("0.19"), ends_at=NOW + timedelta(days=1))
    newer = changed(seen(held, told)).after
    assert (newer.host_floor, newer.ends_at) == (told.floor, told.ends_at)


def test_a_stop_ends_readiness_and_idleness_with_the_stretch() -> None:
    after = lost(builders.lease(ready_since=LATE, idle_since=LATE)).after
    assert (after.run_since, after.ready_since, after.idle_since) == (None, None, None)


@pytest.mark.parametrize(
    ("kind", "running", "disk"),
    [("outbid", 600, 1800), ("stopped", 600, 1800), ("bid_lost", 600, 1800), ("stopped_by_market", 600, 1800)],
)
def test_what_the_market_recorded_ends_the_billing_of_the_gpu_at_its_instant(
    kind: str, running: int, disk: int
) -> None:
    held = builders.lease(accrued_until=LATE, run_since=LATE)
    told = builders.event(kind, at=builders.ago(minutes=20), new_floor=builders.per_hour("0.30"))
    fact = lost(held, events=(told,))
    assert sum(charge.running_seconds for charge in fact.charges) == running
    assert gpu_micros(fact) == held.gpu_rate.over(running).micros
    disks = sum(charge.disk.micros for charge in fact.charges)
    assert abs(disks - held.disk_rate.over(disk + 15).micros) <= 1
    assert fact.after.state_since == told.at


def test_a_host_that_was_recorded_offline_bills_nothing_from_there() -> None:
    held = builders.lease(accrued_until=LATE, run_since=LATE)
    told = builders.event("offline", at=builders.ago(minutes=20))
    fact = lost(held, InstanceState.OFFLINE, events=(told,))
    assert gpu_micros(fact) == held.gpu_rate.over(600).micros
    assert sum(charge.disk.micros for charge in fact.charges) == held.disk_rate.over(600).micros


@pytest.mark.parametrize(
    "changes",
    [{"instance_id": "2"}, {"kind": "price_rise"}, {"at": LATE - timedelta(minutes=1)}, {"at": LATE}],
    ids=str,
)
def test_what_is_recorded_of_others_or_of_metered_time_dates_nothing(changes: dict[str, Any]) -> None:
    """Without a record of its own the stop counts up to the later of the two looks."""
    held = builders.lease(accrued_until=LATE, run_since=LATE)
    told = builders.event(**{"kind": "stopped", "at": builders.ago(minutes=20), **changes})
    assert gpu_micros(lost(held, events=(told,))) == gpu_micros(lost(held))


RELEASING = builders.lease(state=LeaseState.RELEASING, bills=Bills.GPU_AND_DISK, accrued_until=LATE, run_since=LATE)


def useful(fact: LeaseChanged) -> tuple[float, int]:
    """Return the useful seconds, and the microseconds that were taken back as lost."""
    spoiled = sum(charge.phases.spoiled for charge in fact.charges if charge.phases is not None)
    return sum(charge.useful_seconds for charge in fact.charges), spoiled


def test_only_what_nobody_of_ours_stopped_is_lost() -> None:
    """Of 59 useful minutes two checkpoints of 20 were kept; what we paused or release is useful to its end."""
    told = (builders.event("stopped", at=NOW + timedelta(seconds=1)),)
    by_market = lost(RUNS, work=WORK, events=told)
    assert useful(by_market) == (2 * 20 * 60, (19 * 60 + 1) * 1_000_000)
    paused = builders.instance(state=InstanceState.PAUSED)
    for ours in (builders.lease(paused_by_us=True), RELEASING):
        fact = changed(seen(ours, paused, work=WORK, events=told, at=1))
        assert useful(fact)[1] == 0


def gone(held: Lease) -> LeaseChanged:
    """Look at listings that lack a lease until it is believed gone."""
    results = missed((held,), 60, work=WORK, **DENIED)
    return [fact for result in results for fact in result.facts if isinstance(fact, LeaseChanged)][-1]


def test_what_is_gone_is_closed_and_owes_nothing_after_it_was_last_seen() -> None:
    fact = gone(builders.lease(accrued_until=LATE, run_since=LATE, state_since=LATE))
    after = fact.after
    assert (after.state, after.bills, after.billing_rate.micros) == (LeaseState.ENDED, Bills.NOTHING, 0)
    assert after.ended_at is not None
    assert after.ended_at == after.state_since > after.accrued_until
    assert (after.interrupted_by, after.end_reason, after.run_since) == (Cause.HOST_GONE, "host_gone", None)
    assert fact.evidence is not None
    assert fact.cooldown is not None
    assert (*fact.cooldown.place, fact.cooldown.ground) == ("host", "vast/h1", "host_gone")
    assert fact.cooldown.until == after.ended_at + cooldowns.HOST_LOST


def test_a_pool_rests_for_less_long_than_a_host_after_the_loss_of_one_machine() -> None:
    fact = gone(builders.lease(accrued_until=LATE, run_since=LATE, state_since=LATE, host_id="pool/a/b"))
    assert fact.cooldown is not None
    assert fact.after.ended_at is not None
    assert fact.cooldown.until == fact.after.ended_at + cooldowns.POOL_LOST
    assert cooldowns.POOL_LOST < cooldowns.HOST_LOST


def test_a_release_that_is_gone_is_closed_without_blame() -> None:
    fact = gone(RELEASING)
    after = fact.after
    assert (after.state, after.bills, after.run_since) == (LeaseState.ENDED, Bills.NOTHING, None)
    assert after.ended_at is not None
    assert after.accrued_until < after.ended_at
    assert (fact.kind, fact.cooldown, useful(fact)[1]) == ("lease.released", None, 0)


def test_a_loss_keeps_who_waits_and_what_a_rival_bid() -> None:
    rival = builders.per_hour("0.31")
    held = builders.lease(is_held=True, rival_floor=rival)
    offline = lost(held, InstanceState.OFFLINE).after
    assert (offline.is_held, offline.rival_floor) == (True, rival)
    told = builders.event(at=NOW, new_floor=builders.per_hour("0.40"))
    outbid = lost(builders.lease(rival_floor=rival, ask=None), events=(told,)).after
    assert outbid.rival_floor == builders.per_hour("0.405")


def test_a_start_that_failed_rests_its_host_and_says_what_its_daemon_said() -> None:
    held = builders.lease(state=LeaseState.STARTING, has_run=False)
    fact = lost(held, InstanceState.FAILED, message="no space left")
    assert fact.after.end_reason == "start_failed: no space left"
    assert fact.evidence is not None
    assert fact.evidence.sentence.endswith("its daemon said: no space left")
    assert fact.cooldown is not None
    assert (*fact.cooldown.place, fact.cooldown.ground) == ("host", "vast/h1", "a failed start")
    assert fact.cooldown.until == NOW + timedelta(seconds=15) + cooldowns.START_FAILED


def test_a_container_that_ended_at_once_is_marked_so() -> None:
    held = builders.lease(run_since=builders.ago(minutes=1), runs=1)
    assert lost(held, InstanceState.EXITED).after.end_reason == workload_end.FAST_EXIT
    assert lost(builders.lease(runs=1), InstanceState.EXITED).after.end_reason == ""


@pytest.mark.parametrize(
    ("state", "spoiled", "kept"),
    [(LeaseState.RUNNING, 9 * 60, 20 * 60), (LeaseState.RELEASING, 0, 29 * 60)],
    ids=lambda value: getattr(value, "value", None),
)
def test_what_is_gone_counts_up_to_the_first_listing_that_lacked_it(state: LeaseState, spoiled: int, kept: int) -> None:
    """Four minutes that were not metered yet; of 29 useful ones a checkpoint kept 20, unless we were releasing it."""
    held = builders.lease(
        state=state, bills=Bills.GPU_AND_DISK, accrued_until=builders.ago(minutes=4), run_since=LATE, has_run=True
    )
    memory = seen(held, ROW, work=WORK).memory
    fact = next(
        fact
        for result in missed((held,), 60, memory=memory, work=WORK, **DENIED)
        for fact in result.facts
        if isinstance(fact, LeaseChanged) and fact.after.state is LeaseState.ENDED
    )
    assert gpu_micros(fact) == held.gpu_rate.over(255).micros
    assert fact.after.accrued_until == NOW + timedelta(seconds=15)
    assert useful(fact) == (kept, spoiled * 1_000_000)
    assert {charge.lease_id for charge in fact.charges} == {"vast-1"}


def test_a_row_is_metered_up_to_its_listing_not_to_the_end_of_slow_answers() -> None:
    """What starts while other answers are awaited has its record before `now`; the next listing finds it."""
    held = builders.lease(state=LeaseState.STARTING, has_run=False, bills=Bills.DISK)
    row = builders.instance(state=InstanceState.LOADING)
    view = builders.view(instances=(row,), listed_at=builders.NOW + timedelta(minutes=6))
    fleet = builders.fleet(leases=(held,), markets={"vast": view}, now=builders.NOW + timedelta(minutes=7))
    (fact,) = [fact for fact in reconcile.reconcile(fleet, Memory()).facts if isinstance(fact, LeaseChanged)]
    assert fact.after.accrued_until == view.listed_at
