"""Leases that the ledger did not rent, while nothing may be paid for: only a person or a hard cap ends them."""

from typing import Any

import pytest

from agent.decide.limits.limits import Limits
from agent.domain.money import Usd
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Hold, Release
from tests.decide.test_plan import market, only, planned
from tests.support import builders
from tests.support.expiring import holds as holds_shown

FOUND = {"intent_id": ""}
"""A lease that the ledger did not rent: it was adopted by its label."""


@pytest.mark.parametrize("changes", [{"has_failed": True}, {"state": LeaseState.EXITED}])
def test_a_found_lease_is_not_ended_while_nothing_may_be_paid_for(changes: dict[str, Any]) -> None:
    """Nobody knows who uses an instance that was not rented by this ledger, and it could not be rented again."""
    found = (builders.lease(1, **FOUND, **changes),)
    held = only(planned(markets=market(no_spend_because="spend = false"), leases=found))
    assert isinstance(held, Hold)
    assert held.reason.limit == "no_spend"
    assert held.reason.sentence.startswith("spend = false; it would")
    assert not isinstance(only(planned(markets=market(), leases=found)), Hold), "with `spend` it ends"


@pytest.mark.parametrize(
    ("changes", "caps", "rests", "code"),
    [
        ({}, Limits(), ["kill:workload:train"], "killed"),
        ({"has_failed": True}, Limits(), ["kill:workload:train"], "killed"),
        ({"state": LeaseState.PAUSED, "paused_by_us": True}, Limits(per_day=Usd(0)), [], "over_budget"),
        ({"state": LeaseState.RELEASING}, Limits(), [], "release_again"),
    ],
)
def test_a_person_and_a_cap_end_a_found_lease_all_the_same(
    changes: dict[str, Any], caps: Limits, rests: list[str], code: str
) -> None:
    holds = tuple(holds_shown(*rests).values())
    markets = market(no_spend_because="spend = false")
    made = planned(caps, markets=markets, leases=(builders.lease(1, **FOUND, **changes),), holds=holds)
    assert [each.reason.code for each in made.decisions if isinstance(each, Release)] == [code]
