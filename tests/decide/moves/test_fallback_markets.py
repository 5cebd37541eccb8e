"""Fallback markets open once a slot has been down for a while, and close when every slot is up."""

from datetime import datetime
from typing import Any

import pytest

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.decide.moves import fallback_markets
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Hold, Rent
from agent.domain.work.workload import Fallback
from strategies.patient import Patient, PatientParams
from tests.support import builders

WORK = builders.workload(markets=("vast",), fallback=Fallback(("dstack",)))
LONG_AGO = builders.ago(hours=1)
ALL, NONE = frozenset({"dstack"}), frozenset[str]()


def seen(*leases: Lease, since: datetime = LONG_AGO, work: Any = WORK, **changes: Any) -> Fleet:
    return builders.fleet(workloads=(work,), leases=leases, known_since={work.name: since}, **changes)


def down(minutes: float, state: LeaseState = LeaseState.PAUSED) -> Lease:
    return builders.lease(state=state, state_since=builders.ago(minutes=minutes))


@pytest.mark.parametrize(
    ("fleet", "closed"),
    [
        (seen(since=builders.ago(minutes=9)), ALL),
        (seen(since=builders.ago(minutes=10)), NONE),
        (seen(vacated={builders.TRAIN_0: builders.ago(minutes=3)}), ALL),
        (seen(vacated={builders.TRAIN_0: builders.ago(minutes=11)}), NONE),
        (seen(down(9)), ALL),
        (seen(down(11)), NONE),
        (seen(down(11, LeaseState.OFFLINE)), NONE),
        (seen(down(60, LeaseState.RUNNING)), ALL),
        (seen(down(60, LeaseState.STARTING)), ALL),
        (seen(down(60, LeaseState.MISSING)), ALL),
    ],
    ids=str,
)
def test_they_open_by_the_time_of_the_slot_that_is_down_longest(fleet: Fleet, closed: frozenset[str]) -> None:
    assert fallback_markets.closed(fleet, WORK) == closed


def test_without_such_markets_nothing_is_closed() -> None:
    plain = builders.workload()
    assert fallback_markets.closed(seen(work=plain), plain) == NONE
    assert fallback_markets.opens_at(seen(work=plain), plain) is None


@pytest.mark.parametrize(("minutes", "kind"), [(9, Hold), (11, Rent)])
def test_a_plan_rents_there_only_then(minutes: float, kind: type) -> None:
    offer = builders.offer(1, market="dstack", host_id="pool/aws/a/b", floor=None)
    markets = {"vast": builders.view(), "dstack": builders.view(market="dstack", offers=(offer,))}
    fleet = seen(since=builders.ago(minutes=minutes), markets=markets)
    (decision,) = plan.plan(fleet, {"patient": builders.tuned(Patient(), PatientParams())}, Limits()).decisions
    assert isinstance(decision, kind)
