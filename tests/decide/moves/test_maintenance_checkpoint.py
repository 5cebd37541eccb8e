"""A checkpoint before announced maintenance: once for each announcement, in time, and nothing waits for it."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent.act.guarding import guard_orders
from agent.decide import plan
from agent.decide.limits import limits
from agent.decide.moves import last_checkpoint, maintenance_checkpoint
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Hold
from tests.decide.moves.test_last_checkpoint import BEAT, RUNS, WORK, fleet, reported
from tests.support import builders
from tests.support.scene import strategies

NOW = builders.NOW
MINUTE = timedelta(minutes=1)


def orders(lease: Lease, **changes: Any) -> list[tuple[str, str]]:
    return list(maintenance_checkpoint.orders(fleet(lease, **changes)))


@pytest.mark.parametrize(
    ("told", "begins", "due"),
    [
        (0, None, 0),
        (-9, None, -9),
        (-10, None, None),
        (-99, 11, None),
        (-99, 10, 0),
        (-99, 3, -7),
        (-1, 3, -1),
        (-99, 0, None),
    ],
)
def test_it_is_asked_for_shortly_before_it_begins_or_after_an_undated_notice(
    told: int, begins: int | None, due: int | None
) -> None:
    began = None if begins is None else NOW + begins * MINUTE
    lease = replace(
        RUNS, run_since=NOW - 100 * MINUTE, maintenance_told_at=NOW + told * MINUTE, maintenance_begins_at=began
    )
    wanted = [] if due is None else [(lease.intent_id, last_checkpoint.order_of(lease, NOW + due * MINUTE))]
    assert orders(lease) == wanted
    for _, order in wanted:
        answered = {lease.intent_id: reported(msgspec.structs.replace(BEAT, answered=order))}
        assert orders(lease, reports=answered) == [], "it is asked for once"


@pytest.mark.parametrize(
    "changes",
    [
        {"maintenance_told_at": None},
        {"guard_run": None},
        {"state": LeaseState.PAUSED},
        {"has_failed": True},
        {"run_since": NOW + MINUTE},
    ],
    ids=["nothing is announced", "no guard", "paused", "failed", "it ran only after the notice"],
)
def test_what_has_no_guard_at_work_is_not_asked(changes: dict[str, Any]) -> None:
    lease = replace(RUNS, maintenance_told_at=NOW)
    assert orders(lease) != []
    assert orders(replace(lease, **changes)) == []
    assert orders(lease, reports={lease.intent_id: reported(ago=timedelta(minutes=4))}) == [], "a silent guard"


def test_the_plan_asks_for_it_and_the_lease_goes_on() -> None:
    lease = replace(RUNS, maintenance_told_at=NOW)
    planned = plan.plan(fleet(lease), strategies(), limits.Limits())
    assert [type(decision) for decision in planned.decisions] == [Hold]
    order = last_checkpoint.order_of(lease, NOW)
    assert guard_orders.wanted(planned, (lease,), (WORK,)) == {lease.intent_id: order}
