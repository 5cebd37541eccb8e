"""The fold of a rehearsal's events into the rows that a person reads."""

from datetime import timedelta
from typing import Any

from agent.cli.rehearsing import event_timeline
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from tests.support import builders

BID = builders.per_hour("0.25")


def event(kind: str, second: int, **fields: Any) -> Event:
    values: dict[str, Any] = {"lease_id": "vast-1", "intent_id": "i1", "host_id": "7", "bid": BID, **fields}
    return Event(at=builders.NOW + timedelta(seconds=second), kind=EventKind(kind), workload="train", slot=0, **values)


def told(*events: Event, tenure: Tenure = Tenure.INTERRUPTIBLE) -> list[tuple[str, float | None]]:
    leases = [builders.lease(1, intent_id="i1", tenure=tenure)]
    rows = event_timeline.fold(events, leases)
    return [(row.what, None if row.waited is None else row.waited.total_seconds()) for row in rows]


def test_a_rent_and_its_start_are_one_row() -> None:
    rent = event("lease.opened", 0, lease_id="", reason_code="best_offer")
    assert told(rent, event("lease.running", 60)) == [("rent", 60.0)]
    assert told(rent) == [("rent", None)]


def test_a_move_on_demand_is_one_row_with_the_parking_and_the_release() -> None:
    events = (
        event("lease.paused", 0, reason_code="cancel_start"),
        event("lease.opened", 1, lease_id="", reason_code="move"),
        event("lease.running", 31),
        event("lease.released_by_us", 32, reason_code="moved"),
        event("lease.released", 35),
    )
    assert told(*events, tenure=Tenure.ON_DEMAND) == [("move, on demand", 30.0)]
    assert told(*events) == [("move", 30.0)]


def test_a_raised_bid_tells_when_it_won_and_a_lowered_one_waits_for_nothing() -> None:
    raised = event("lease.rebid", 0, reason_code="raise_bid", intent_id="i2")
    back = event("lease.resumed", 20)
    assert told(raised, back) == [("raise the bid", 20.0)]
    lowered = event("lease.rebid", 0, reason_code="lower_bid", intent_id="i2")
    assert told(lowered, back) == [("lower the bid", None), ("resumed by itself", None)]


def test_a_changed_limit_is_called_no_raise() -> None:
    back = event("lease.resumed", 20)
    for code, what, waited in (
        ("value_limit", "change the limit", 20.0),
        ("start_limit", "lower the limit", 20.0),
        ("cap_limit", "lower the limit", None),
    ):
        first = told(event("lease.rebid", 0, reason_code=code, intent_id="i2"), back)[0]
        assert first == (what, waited), code


def test_a_start_after_a_loss_does_not_answer_a_limit_that_was_changed_before_it() -> None:
    changed = event("lease.rebid", 0, reason_code="value_limit", intent_id="i2")
    loss = event("lease.interrupted", 600, cause=Cause.OUTBID)
    back = event("lease.resumed", 900)
    assert told(changed, loss, back) == [("change the limit", None), ("OUTBID", None), ("resumed by itself", None)]


def test_a_loss_has_a_row_with_its_cause_and_evidence() -> None:
    loss = event("lease.interrupted", 0, cause=Cause.HOST_OFFLINE, evidence="silent for 90 s", reason="?")
    (row,) = event_timeline.fold([loss], [])
    assert (row.what, row.why, row.host, row.price) == ("HOST OFFLINE", "silent for 90 s", "7", "$0.2500/h bid")


def test_what_it_does_not_know_is_shown_under_its_own_name() -> None:
    assert told(event("alert.someday", 0)) == [("alert.someday", None)]
