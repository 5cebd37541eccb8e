"""A disk that a person keeps is not given up because a window closes or a running time is over."""

import datetime as dt
from collections.abc import Iterable
from typing import Any

import pytest

from agent.decide import plan
from agent.decide.run_times import running_limits
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record import hold
from agent.domain.record.hold import DISKS, EVERYTHING, OperatorHold, Target, Word
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Decision, Hold, Pause, Release
from agent.domain.work.run_times.run_window import Outside, WindowNow, WindowRule
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from strategies.patient import Patient, PatientParams
from tests.support import builders
from tests.support.builders import NOW, ago

HOURS = dt.timedelta(hours=1)
CLOSED = {"windows": (WindowRule("0 20 * * *", 12 * HOURS),), "outside": Outside.RELEASE}
RAN = round(3 * 3600e6)
PAUSED = builders.lease(state=LeaseState.PAUSED, paused_by_us=True, ran_micros=RAN)


def limited(then: AtLimit, of: LimitOf = LimitOf.WORKLOAD) -> dict[str, Any]:
    return {"max_running": (RunningLimit(2 * HOURS, of, then),)}


def given(word: Word, *targets: Target) -> tuple[OperatorHold, ...]:
    return tuple(OperatorHold(word, target, ago(hours=1), "ann") for target in targets)


KEPT = (
    given(Word.PAUSE, hold.of_workload("train")),
    given(Word.HELD, hold.of_slot(PAUSED.slot)),
    given(Word.KILL, EVERYTHING, DISKS),
)
OVER = (CLOSED, limited(AtLimit.RELEASE), limited(AtLimit.DONE), limited(AtLimit.DONE, LimitOf.LEASE))


def fleet(rules: dict[str, Any], holds: Iterable[OperatorHold], **changes: Any) -> Fleet:
    rows = (builders.instance(state=InstanceState.PAUSED),)
    shut = WindowNow(is_open=False, until=NOW + 5 * HOURS, spoken="Mon 20:00 UTC")
    settings: dict[str, Any] = {
        "workloads": (builders.workload(**rules),),
        "windows": {"train": shut} if rules is CLOSED else {},
        "leases": (PAUSED,),
        "markets": {"vast": builders.view(offers=(builders.offer(2),), instances=rows)},
        "holds": tuple(holds),
    }
    return builders.fleet(**{**settings, **changes})


def decided(of: Fleet) -> Decision:
    tuned = {"patient": builders.tuned(Patient(), PatientParams())}
    (decision,) = plan.plan(of, tuned, builders.NO_LIMITS).decisions
    return decision


@pytest.mark.parametrize("rules", OVER, ids=["window", "release", "done", "done lease"])
@pytest.mark.parametrize("holds", KEPT, ids=["pause", "held", "kill"])
def test_a_paused_lease_stays_with_its_disk_until_the_person_lets_it_go(
    rules: dict[str, Any], holds: tuple[OperatorHold, ...]
) -> None:
    assert isinstance(decided(fleet(rules, holds)), Hold)
    assert list(running_limits.done(fleet(rules, holds))) == [], "a done slot would release it"
    assert isinstance(decided(fleet(rules, ())), Release)


def test_its_order_to_pause_is_sent_all_the_same() -> None:
    runs = builders.lease(ran_micros=RAN, run_since=ago(hours=3))
    seen = {"vast": builders.view(instances=(builders.instance(),))}
    for rules in OVER:
        stop = decided(fleet(rules, KEPT[0], leases=(runs,), markets=seen))
        assert isinstance(stop, Pause)
        assert stop.reason.code == "paused"


def test_what_nobody_keeps_is_done_by_its_running_time() -> None:
    ((target, _, _),) = running_limits.done(fleet(limited(AtLimit.DONE), ()))
    assert target == hold.of_workload("train")
