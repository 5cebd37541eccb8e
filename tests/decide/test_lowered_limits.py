"""Running winners of auctions under a cap of the rate: a lower limit instead of a pause, where that does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.decide.moves import immediate_endings
from agent.decide.pricing import cooldowns
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold, Pause, Rebid
from tests.support import builders, second_price

WORK = builders.workload(value_per_hour=builders.per_hour("0.80"))
RUNS = second_price.lease()
CAP = Limits(per_hour=builders.per_hour("0.50"))


def decided(lease: Lease = RUNS, caps: Limits = CAP, **changes: Any) -> Decision:
    fleet = second_price.fleet(leases=(lease,), rows=[second_price.row()], workloads=(WORK,))
    (made,) = plan.plan(msgspec.structs.replace(fleet, **changes), second_price.TUNED, caps).decisions
    return made


def test_a_running_winner_over_a_cap_keeps_running_under_a_lower_limit() -> None:
    """It pays $0.22 and counts at $0.90: somebody uses it, and no cap of $0.50 is in danger."""
    cut = decided()
    assert isinstance(cut, Rebid)
    assert (cut.lease, cut.bid, cut.reason.code, cut.reason.limit) == (
        RUNS,
        builders.per_hour("0.49"),
        "cap_limit",
        "per_hour",
    )
    done = msgspec.structs.replace(RUNS, bid_limit=cut.bid, bid_since=builders.NOW)
    assert isinstance(decided(done), Hold)


@pytest.mark.parametrize(("cap", "kind"), [("0.234", Rebid), ("0.233", Pause)])
def test_a_limit_is_lowered_to_a_cent_over_the_price_and_no_further(cap: str, kind: type) -> None:
    """The disk counts $0.004 beside it."""
    made = decided(caps=Limits(per_hour=builders.per_hour(cap)))
    assert isinstance(made, kind)
    assert not isinstance(made, Rebid) or made.bid == builders.per_hour("0.23")


def test_a_limit_that_is_falsely_listed_too_high_is_not_lowered_to_more_than_the_file_allows() -> None:
    """Its true limit may be $0.17: $31.00 is listed, $2.00 is the cap, and an hour is worth $0.80."""
    falsely = msgspec.structs.replace(RUNS, bid_limit=builders.per_hour("31"))
    cut = decided(falsely, Limits(per_hour=builders.per_hour("2")))
    assert isinstance(cut, Rebid)
    assert cut.bid == builders.per_hour("0.80")


OWN = (builders.per_hour("0.40"),)
LISTED = builders.per_hour(3000)


def test_a_limit_that_is_listed_above_our_own_lowers_no_limit_below_ours() -> None:
    """The cap of $1.00 held with both limits of $0.40: the listing alone is no reason to give one up."""
    leases = [
        second_price.lease(number, slot=Slot("train", number - 1), bid_limit=LISTED, recent_bids=OWN)
        for number in (1, 2)
    ]
    rows = [second_price.row(number) for number in (1, 2)]
    work = replace(WORK, slots=2)
    fleet = second_price.fleet(leases=tuple(leases), rows=rows, workloads=(work,))
    orders = plan.plan(fleet, second_price.TUNED, Limits(per_hour=builders.per_hour(1))).decisions
    assert [(each.lease.lease_id, each.bid) for each in orders if isinstance(each, Rebid)] == [
        ("uniform-1", OWN[0]),
        ("uniform-2", OWN[0]),
    ]
    assert len(orders) == 2


@pytest.mark.parametrize("build", [second_price.waiting, second_price.lease])
def test_a_bid_that_is_listed_above_our_own_is_ordered_again_and_not_paused(build: Callable[..., Lease]) -> None:
    made = decided(build(bid_limit=LISTED, recent_bids=OWN))
    assert isinstance(made, Rebid)
    assert (made.bid, made.reason.code) == (OWN[0], "cap_limit")


def test_a_limit_that_the_next_plan_lowers_pauses_nothing_while_markets_answer_slowly() -> None:
    fleet = second_price.fleet(leases=(RUNS,), rows=[second_price.row()], workloads=(WORK,))
    assert immediate_endings.stops(fleet, CAP) == ()
    (paused,) = immediate_endings.stops(msgspec.structs.replace(fleet, tallies=(REFUSED,)), CAP)
    assert isinstance(paused, Pause)


REFUSED = Tally(
    Counted.UNTAKEN, RUNS.lease_id, builders.NOW, builders.NOW + cooldowns.UNTAKEN_KEPT, "no", cooldowns.LOWER
)


UNPAID = second_price.view(instances=(second_price.row(),), no_spend_because="the clock is wrong")


@pytest.mark.parametrize(
    ("lease", "changes"),
    [
        ({}, {"tallies": (REFUSED,)}),
        ({"notice_at": builders.NOW}, {}),
        ({"is_held": True}, {}),
        ({"estranged_since": builders.NOW}, {}),
        ({"state": LeaseState.STARTING}, {}),
        ({}, {"workloads": ()}),
        ({}, {"markets": {second_price.NAME: UNPAID}}),
    ],
)
def test_a_lease_whose_limit_cannot_be_lowered_is_paused(lease: dict[str, Any], changes: dict[str, Any]) -> None:
    assert isinstance(decided(msgspec.structs.replace(RUNS, **lease), **changes), Pause)
