"""Why a lease stopped: one of nine causes, in a fixed order, with its evidence."""

from datetime import timedelta
from typing import Any

import pytest

from agent.decide.reconcile.losses import cause
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from tests.support import builders

PAUSED = InstanceState.PAUSED
SINCE = builders.ago(minutes=1)
NOW = builders.NOW
ON_DEMAND = {"tenure": Tenure.ON_DEMAND}
OUTBID = builders.event(new_floor=builders.per_hour("0.30"), your_bid=builders.per_hour("0.22"))


def floor(dollars: str | None, **changes: Any) -> dict[str, Any]:
    """Give a view that lists the lease's own slice at a floor."""
    return {"offers": (builders.offer(1, floor=None if dollars is None else builders.per_hour(dollars), **changes),)}


@pytest.mark.parametrize(
    ("held", "state", "seen", "expected", "rule"),
    [
        ({}, InstanceState.OFFLINE, {}, Cause.HOST_OFFLINE, "host_state"),
        ({}, InstanceState.EXITED, {}, Cause.CONTAINER_EXIT, "container_state"),
        ({}, PAUSED, {"credit": builders.usd(0)}, Cause.OUT_OF_CREDIT, "credit"),
        ({}, PAUSED, {"credit": builders.usd("-1.5"), "events": (OUTBID,)}, Cause.OUT_OF_CREDIT, "credit"),
        ({"ends_at": NOW}, PAUSED, {}, Cause.CONTRACT_END, "end_date"),
        ({"ends_at": NOW + timedelta(seconds=1)}, PAUSED, {}, Cause.UNKNOWN, "none"),
        ({}, PAUSED, {"events": (OUTBID,)}, Cause.OUTBID, "inbox"),
        (ON_DEMAND, PAUSED, {}, Cause.EXTERNAL_STOP, "tenure"),
        ({}, PAUSED, {"credit": None}, Cause.UNKNOWN, "none"),
        ({}, PAUSED, floor("0.30"), Cause.OUTBID, "floor"),
        ({}, PAUSED, floor("0.15"), Cause.EXTERNAL_STOP, "floor"),
        ({}, PAUSED, floor("0.22"), Cause.UNKNOWN, "echo"),
        ({}, PAUSED, floor(None), Cause.DISPLACED, "no_floor"),
        ({}, PAUSED, floor("0.30", gpus=2), Cause.UNKNOWN, "none"),
        ({}, PAUSED, floor("0.30", host_id="h9"), Cause.UNKNOWN, "none"),
    ],
    ids=str,
)
def test_the_order_of_causes(
    held: dict[str, Any], state: InstanceState, seen: dict[str, Any], expected: Cause, rule: str
) -> None:
    found, evidence = cause.of_stop(builders.lease(**held), state, builders.view(**seen), SINCE, NOW)
    assert (found, evidence.rule) == (expected, rule)
    assert evidence.sentence


def test_a_stop_that_the_market_itself_lays_to_an_outsider_is_no_trouble_of_the_host() -> None:
    row = builders.instance(1, state=InstanceState.OFFLINE, stopped_from_outside="terminated by user")
    found, evidence = cause.of_row(builders.lease(), row, builders.view(), SINCE, NOW)
    assert (found, evidence.rule) == (Cause.EXTERNAL_STOP, "market_record")
    assert "terminated by user" in evidence.sentence


@pytest.mark.parametrize(
    ("listed", "sentence"),
    [
        ("0.30", "the host lists the slice at a floor of $0.3000/h, above our $0.2200/h"),
        ("0.22", "the host lists the slice at $0.2200/h, which is our own bid"),
        ("0.15", "the host lists the slice at a floor of $0.1500/h, not above our $0.2200/h: nobody bid more"),
    ],
)
def test_the_floor_that_is_the_evidence_is_kept_with_it(listed: str, sentence: str) -> None:
    """A rival's bid is learned from it, and a raise is computed against it; the lowest of several counts."""
    rows = (*floor("0.90", offer_id="a9")["offers"], *floor(listed)["offers"])
    _, evidence = cause.of_stop(builders.lease(), PAUSED, builders.view(offers=rows), SINCE, NOW)
    assert (evidence.floor, evidence.sentence) == (builders.per_hour(listed), sentence)


def test_a_host_without_a_slice_to_bid_for_says_so() -> None:
    _, evidence = cause.of_stop(builders.lease(), PAUSED, builders.view(**floor(None)), SINCE, NOW)
    assert (evidence.floor, evidence.sentence) == (None, "the host lists no slice that can be bid for")


@pytest.mark.parametrize(
    ("winner", "expected"),
    [
        ("0.30", Cause.OUTBID),
        ("0.22", Cause.OUTBID),  # reported to two decimals: it may be half a cent more
        ("0.21", Cause.DISPLACED),
        ("0.39", Cause.OUTBID),
        ("0.40", Cause.DISPLACED),
        ("0.395", Cause.DISPLACED),
        (None, Cause.DISPLACED),
    ],
)
def test_the_inbox_tells_a_bidder_from_an_on_demand_renter(winner: str | None, expected: Cause) -> None:
    told = builders.event(new_floor=None if winner is None else builders.per_hour(winner))
    found, evidence = cause.of_stop(builders.lease(), PAUSED, builders.view(events=(told,)), SINCE, NOW)
    assert found is expected
    assert (evidence.floor is None) is (winner is None)


def test_what_must_be_beaten_is_the_most_the_winner_may_bid() -> None:
    _, evidence = cause.of_stop(builders.lease(), PAUSED, builders.view(events=(OUTBID,)), SINCE, NOW)
    assert evidence.floor == builders.per_hour("0.305")


def test_without_an_ask_any_winner_above_our_bid_is_a_bidder() -> None:
    found, _ = cause.of_stop(builders.lease(ask=None), PAUSED, builders.view(events=(OUTBID,)), SINCE, NOW)
    assert found is Cause.OUTBID


@pytest.mark.parametrize(
    "changes", [{"instance_id": "2"}, {"kind": "stopped"}, {"at": SINCE - timedelta(seconds=1)}], ids=str
)
def test_what_the_inbox_says_of_others_or_of_before_is_no_evidence(changes: dict[str, Any]) -> None:
    told = builders.event(**{"kind": "outbid", "new_floor": builders.per_hour("0.30"), **changes})
    found, _ = cause.of_stop(builders.lease(), PAUSED, builders.view(events=(told,)), SINCE, NOW)
    assert found is Cause.UNKNOWN


def test_of_several_messages_the_last_counts() -> None:
    first = builders.event(event_id="e1", at=builders.ago(seconds=50), new_floor=builders.per_hour("0.30"))
    last = builders.event(event_id="e2", at=builders.ago(seconds=5), new_floor=builders.per_hour("0.40"))
    found, _ = cause.of_stop(builders.lease(), PAUSED, builders.view(events=(last, first)), SINCE, NOW)
    assert found is Cause.DISPLACED


@pytest.mark.parametrize(
    ("ends_at", "expected"),
    [(None, Cause.HOST_GONE), (NOW, Cause.CONTRACT_END), (NOW + timedelta(seconds=1), Cause.HOST_GONE)],
)
def test_what_is_gone_ended_or_lost_its_host(ends_at: Any, expected: Cause) -> None:
    found, evidence = cause.of_absence(builders.lease(ends_at=ends_at), NOW)
    assert found is expected
    assert evidence.sentence
