"""A reload may not raise the floor of a market's credit over what the account has while leases run there (rule 9)."""

from typing import Any

import pytest

from agent.decide.limits.limits import Limits
from agent.decide.operators import reload
from agent.domain.fleet import Spend
from agent.domain.record.lease import LeaseState
from tests.support.builders import NOW, lease, usd, workload


def places(floor: Limits, before: Limits, **changes: Any) -> list[str]:
    """Return the keys that refuse a floor of the credit, where the account has $40."""
    held = (lease(**changes),)
    files = reload.After((workload(),), frozenset({"vast"}), floor, credits={"vast": usd("40")})
    standing = reload.present(held, (), Spend(), NOW)
    found = reload.findings(files, held, standing, before)
    return [f"{each.key} {each.code}" for each in found if each.is_refusal]


@pytest.mark.parametrize(
    ("floor", "before", "is_refused"),
    [("50", None, True), ("40", "5", True), ("39.99", "5", False), ("50", "50", False)],
)
def test_a_floor_that_would_stop_what_runs_is_refused(floor: str, before: str | None, is_refused: bool) -> None:
    old = Limits(min_credit=None if before is None else usd(before))
    assert places(Limits(min_credit=usd(floor)), old) == ["limits.min_credit under_burn"] * is_refused
    own = Limits(min_credit_of={"vast": usd(floor)})
    assert places(own, old) == ["markets.vast.min_credit under_burn"] * is_refused


def test_a_floor_over_the_credit_is_taken_where_nothing_runs() -> None:
    assert places(Limits(min_credit=usd("50")), Limits(), state=LeaseState.PAUSED, paused_by_us=True) == []
