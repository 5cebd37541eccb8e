"""An empty slot is not rented for the last minutes of its window: the image would be paid for, and no work."""

from datetime import timedelta
from typing import Any

import pytest

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.domain.work.decision import Decision
from agent.domain.work.run_times.run_window import Outside, WindowNow, WindowRule
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import OnChange
from strategies.patient import Patient, PatientParams
from tests.support import builders

NOW = builders.NOW


OLD = builders.lease(1, ran_micros=round(3 * 3600e6), run_since=NOW - timedelta(hours=3), spec_digest="an older one")
A_LEASE = (RunningLimit(timedelta(hours=2), LimitOf.LEASE, AtLimit.MOVE),)


def decided(
    minutes: float, lasts: timedelta, outside: Outside, *, is_running: bool = False, **changes: Any
) -> Decision:
    work = builders.workload(windows=(WindowRule("0 20 * * *", lasts),), outside=outside, **changes)
    window = WindowNow(is_open=True, until=NOW + timedelta(minutes=minutes), spoken="Mon 08:00 UTC")
    view = builders.view(offers=(builders.offer(2),), instances=(builders.instance(1),) if is_running else ())
    fleet = builders.fleet(
        workloads=(work,),
        windows={work.name: window},
        leases=(OLD,) if is_running else (),
        markets={"vast": view},
    )
    [decision] = plan.plan(fleet, {"patient": builders.tuned(Patient(), PatientParams())}, Limits()).decisions
    return decision


@pytest.mark.parametrize("outside", Outside)
@pytest.mark.parametrize(
    ("minutes", "lasts", "rents"),
    [(14, 720, False), (15, 720, True), (9, 40, False), (10, 40, True), (1, 5, False), (2, 5, True)],
)
def test_nothing_is_rented_for_the_last_minutes(outside: Outside, minutes: float, lasts: int, rents: bool) -> None:
    reason = decided(minutes, timedelta(minutes=lasts), outside).reason
    assert (reason.code == "best_offer") is rents
    assert rents or reason.sentence == "its window closes at Mon 08:00 UTC, too soon for a start"


def test_what_runs_goes_on_to_the_end() -> None:
    assert decided(1, timedelta(hours=12), Outside.RELEASE, is_running=True).reason.code == "running"


@pytest.mark.parametrize("outside", Outside)
@pytest.mark.parametrize("moves", [{"max_running": A_LEASE}, {"on_change": OnChange.MOVE}], ids=["ran", "changed"])
def test_nothing_moves_in_the_last_minutes(moves: dict[str, Any], outside: Outside) -> None:
    def code(minutes: float) -> str:
        return decided(minutes, timedelta(hours=12), outside, is_running=True, **moves).reason.code

    assert code(15) == "best_offer"
    assert code(14) == "running"
