"""The two halves of a restart in place: before any strategy is asked, and only if the start is permitted."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec

from agent.decide import plan, slots
from agent.decide.limits.limits import Limits
from agent.decide.reconcile import outcomes
from agent.decide.reconcile.probes import liveness
from agent.decide.strategy import Proposal, SlotView
from agent.domain.fleet import MarketView, Spend
from agent.domain.market.instance import InstanceState
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Resume
from agent.domain.work.run_times.run_window import WindowNow, WindowRule
from agent.domain.work.stall import StallRule
from strategies.patient import Patient, PatientParams
from tests.support import builders
from tests.support.expiring import in_force

NOW = builders.NOW


def look(**changes: Any) -> SlotView | Proposal:
    return slots.view_or_proposal(builders.fleet(**changes), builders.slot(), in_force({}))


def test_an_unhealthy_service_is_stopped_and_started_in_place_but_not_in_the_dark_nor_during_a_move() -> None:
    ill = builders.lease(unhealthy_since=NOW, restart_at=NOW, restarts=1, end_reason="unhealthy: no answer")
    listed = {"vast": MarketView("vast", is_fresh=True, listed_at=NOW)}
    stop = look(leases=(ill,), markets=listed)
    assert isinstance(stop, Proposal)
    assert stop.kind is IntentKind.PAUSE
    assert stop.reason == Reason("restart", "its service does not answer (no answer): restart 1 in place")
    assert isinstance(look(leases=(ill,), markets={"vast": MarketView("vast")}), SlotView)
    arriving = builders.lease(lease_id="other", instance_id="77", state=LeaseState.STARTING)
    assert isinstance(look(leases=(ill, arriving), markets=listed), SlotView)
    stopped = msgspec.structs.replace(ill, state=LeaseState.PAUSED, paused_by_us=True, unhealthy_since=None)
    start = look(leases=(stopped,), markets=listed)
    assert isinstance(start, Proposal)
    assert (start.kind, start.reason.code) == (IntentKind.RESUME, "restart")
    late = msgspec.structs.replace(stopped, restart_at=NOW - timedelta(minutes=16))
    assert isinstance(look(leases=(late,), markets=listed), SlotView), "an old restart is the strategy's business"


# --- a start that is forbidden ----------------------------------------------------------------------------------------
STUCK = builders.lease(
    run_since=builders.ago(hours=3),
    stalled_since=builders.ago(hours=1),
    stalled_at=NOW,
    restart_at=NOW,
    restarts=1,
    end_reason="stalled: its work shows no progress since 11:00 UTC",
)
WORK = builders.workload(stalled=StallRule(timedelta(minutes=45)))
LOCKED = OperatorHold(Word.LOCK, hold.of_workload("train"), builders.ago(hours=1), "ann")


def decided(caps: Limits = builders.NO_LIMITS, seen: MarketView | None = None, **changes: Any) -> Decision:
    settings = {"markets": {"vast": seen or listed()}, "leases": (STUCK,), "workloads": (WORK,), **changes}
    return plan.plan(
        builders.fleet(**settings), {"patient": builders.tuned(Patient(), PatientParams())}, caps
    ).decisions[0]


def listed(**changes: Any) -> MarketView:
    return builders.view(offers=(), instances=(builders.instance(),), **changes)


def test_a_permitted_restart_begins_with_the_stop() -> None:
    assert decided() == Pause(STUCK, Reason("restart", "its work shows no progress since 11:00 UTC (restart 1)"))


def test_a_lease_that_could_not_be_started_again_is_not_stopped_for_its_restart() -> None:
    locked = decided(holds=(LOCKED,))
    assert isinstance(locked, Hold)
    assert locked.reason == Reason(
        "locked",
        "workload:train is locked by ann; `gpubid unlock train` ends that; "
        "it would restart it: its work shows no progress since 11:00 UTC (restart 1)",
    )
    for why in ({"no_spend_because": "spend is false"}, {"clock_skew_seconds": 90.0}, {"credit": builders.usd(0)}):
        assert isinstance(decided(seen=listed(**why)), Hold), why
    a_day = Limits(per_day=builders.usd(5), reserve=timedelta(hours=1))
    assert isinstance(decided(a_day, spend=Spend(today=builders.usd("4.9"))), Hold), "no room for another hour"
    assert isinstance(decided(a_day, spend=Spend(today=builders.usd("4.7"))), Pause)
    assert isinstance(decided(Limits(per_instance_hour=builders.per_hour("0.20"))), Hold)


def test_a_lease_that_would_wait_for_another_markets_clock_is_not_stopped_for_its_restart() -> None:
    """It stayed stopped until that clock was right, and after fifteen minutes its restart was forgotten."""
    windowed = replace(WORK, windows=(WindowRule("0 8 * * *", timedelta(hours=12)),))
    is_open = {"train": WindowNow(is_open=True, until=NOW + timedelta(hours=5), spoken="20:00")}
    markets = {"vast": listed(), "runpod": builders.view(market="runpod", clock_skew_seconds=90.0)}
    held = decided(markets=markets, workloads=(windowed,), windows=is_open)
    assert (type(held), held.reason.code) == (Hold, "clock_doubted")
    assert isinstance(decided(workloads=(windowed,), windows=is_open), Pause)


def test_a_stop_that_waited_for_long_is_followed_by_its_start() -> None:
    waited = msgspec.structs.replace(STUCK, restart_at=builders.ago(hours=5), stalled_since=builders.ago(hours=6))
    stop = decided(leases=(waited,))
    assert isinstance(stop, Pause)
    stopped = outcomes.written(stop, NOW, WORK.checkpoint, WORK.ready).lease
    paused = builders.view(offers=(), instances=(builders.instance(state=InstanceState.PAUSED),))
    start = decided(leases=(stopped,), seen=paused)
    assert (type(start), start.reason.code) == (Resume, "restart")


def test_another_order_to_stop_calls_a_restart_off() -> None:
    stopped = outcomes.written(Pause(STUCK, Reason("paused", "by ann")), NOW, WORK.checkpoint, WORK.ready).lease
    assert not liveness.is_start_due(stopped, NOW)
