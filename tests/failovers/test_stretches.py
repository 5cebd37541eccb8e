"""What the ledger must and may have for GPUs, and whose a stop was, by the market's own record."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.failovers import stretches
from tests.failovers.stretches import Stretch

HOUR = 3600.0
RUNS = Stretch("9", HOUR, 2 * HOUR, 0.5)


def turn(at: float, gpu: float, instance: int = 9) -> Mapping[str, Any]:
    return {"at": at, "contract_id": instance, "gpu": gpu, "is_end": False}


def listing(at: float, status: int = 200) -> Mapping[str, Any]:
    return {"time": at, "method": "GET", "path": "/api/v1/instances/", "status": status}


def stop(at: float, instance: str = "9", method: str = "PUT") -> Mapping[str, Any]:
    return {"time": at, "method": method, "path": f"/api/v0/instances/{instance}/", "status": 200}


def test_a_stretch_is_a_span_at_one_rate() -> None:
    turns = [turn(0.0, 0.0), turn(HOUR, 0.5), turn(HOUR, 0.5), turn(5.0, 0.1, 7), turn(2 * HOUR, 0.0)]
    assert stretches.charged(turns, 3 * HOUR) == [RUNS, Stretch("7", 5.0, 3 * HOUR, 0.1)]


def test_a_look_counts_only_if_somebody_led_who_could_record_it() -> None:
    calls = [*map(listing, (10.0, 500.0, 800.0, 900.0)), listing(5.0, 503), {**listing(6.0), "method": "PUT"}]
    assert stretches.looks(calls, [(550.0, 850.0)]) == [10.0, 900.0]


def test_the_market_charges_up_to_where_the_ledger_has_metered() -> None:
    again = Stretch("9", 3 * HOUR, 4 * HOUR, 1.0)
    assert stretches.least_dollars([RUNS, again], {}) == {"9": pytest.approx(1.5)}
    assert stretches.least_dollars([RUNS, again], {"9": 1.5 * HOUR}) == {"9": pytest.approx(0.25)}


def test_between_two_looks_the_highest_rate_counts() -> None:
    dearer = Stretch("9", 2 * HOUR, 3 * HOUR, 0.8)
    seen = [0.5 * HOUR, 1.5 * HOUR, 2.5 * HOUR, 3.5 * HOUR]
    most = stretches.most_dollars([RUNS, dearer], seen, {"9": 0.0}, 9 * HOUR)
    assert most == {"9": pytest.approx(0.5 + 0.8 + 0.8)}
    most = stretches.most_dollars([RUNS], [], {"9": HOUR}, 2 * HOUR)
    assert most == {"9": pytest.approx(0.5 + 0.5 * stretches.SENT_SECONDS / HOUR)}


def test_a_price_below_our_bid_may_count_at_the_bid() -> None:
    bids = [(0.5 * HOUR, 0.6), (1.5 * HOUR, 0.7), (2.5 * HOUR, 0.9)]
    later = Stretch("8", 0.0, HOUR, 0.5)
    assert stretches.at_bids([RUNS, later], {"9": bids}) == [Stretch("9", HOUR, 2 * HOUR, 0.7), later]
    assert stretches.at_bids([RUNS], {"9": [(0.0, 0.4)]}) == [RUNS]


@pytest.mark.parametrize(
    ("ledger", "is_right"), [(0.499, True), (0.497, False), (0.599, True), (0.601, True), (0.603, False)]
)
def test_a_ledger_outside_what_it_must_and_may_have_is_found(ledger: float, is_right: bool) -> None:
    found = stretches.misspent({"9": ledger}, {"9": 0.5}, {"9": 0.6})
    assert (found == []) is is_right


def test_an_instance_that_one_side_does_not_know_is_found() -> None:
    assert len(stretches.misspent({"8": 0.1}, {"7": 0.2}, {"7": 0.2})) == 2


@pytest.mark.parametrize(
    ("calls", "is_ours"),
    [
        ([stop(2 * HOUR)], True),
        ([stop(2 * HOUR, method="DELETE")], True),
        ([stop(2 * HOUR - 60.0)], False),
        ([stop(2 * HOUR, "8")], False),
        ([{**stop(2 * HOUR), "path": "/api/v0/instances/request_logs/9/"}], False),
    ],
)
def test_an_interruption_that_was_a_stop_of_ours_is_found(calls: list[Mapping[str, Any]], is_ours: bool) -> None:
    raised = [Stretch("9", HOUR, 1.5 * HOUR, 0.4), Stretch("9", 1.5 * HOUR, 2 * HOUR, 0.5)]
    assert bool(stretches.own_stops(raised, calls, [("9", 2 * HOUR + 30.0)])) is is_ours
