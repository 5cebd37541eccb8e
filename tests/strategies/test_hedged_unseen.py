"""hedged for a deadline on several markets: what it believes of a market that nobody looked at or where no bid fits."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.domain.market.capacity import Capacity
from agent.domain.market.offer import Offer
from agent.domain.record.lease import Lease
from tests.strategies.test_hedged_markets import NOW, decided, known, offer, seen
from tests.support import builders

ASK = offer(22, "0.66")
BEYOND = offer(20, "0.66", "0.65", market="runpod")
"""Its floor is within the price, and above what may be bid beside its ask."""


def last_look(*, is_there: bool, age: float, ago: float = 0.0) -> dict[str, Capacity]:
    """Return what is known: runpod at a look so many hours ago, in a state that had lasted for `age` hours."""
    at = NOW - timedelta(hours=ago)
    spell = replace(known("runpod", is_there=True), is_there=is_there, since=at - timedelta(hours=age), seen_at=at)
    return {"train@vast": known("vast", is_there=False), "train@runpod": spell}


def costs(offers: list[Offer], capacity: dict[str, Capacity], *leases: Lease) -> dict[str, float]:
    made: Any = decided(seen(offers, leases, capacity=capacity))
    return {option.name: option.dollars for option in made.reason.options}


@pytest.mark.parametrize("age", [0.1, 12.0])
def test_capacity_that_no_bid_fits_is_gone_as_long_as_looks_counted_it(age: float) -> None:
    """In each cycle it was gone since a moment ago, and so a moment later it might be back."""
    absent = costs([ASK, offer(20, "0.66", market="runpod")], last_look(is_there=False, age=age))
    assert costs([ASK, BEYOND], last_look(is_there=True, age=age)) == pytest.approx(absent)


def test_a_market_that_was_not_asked_is_gone_since_its_last_look_for_a_slot_without_a_lease() -> None:
    absent = costs([ASK], last_look(is_there=False, age=12.0))
    assert costs([ASK], last_look(is_there=True, age=1.0, ago=12.0)) == pytest.approx(absent)
    assert costs([ASK], last_look(is_there=False, age=0.1, ago=12.0)) == pytest.approx(absent)


def test_a_market_that_was_not_asked_keeps_its_last_look_while_a_slot_runs() -> None:
    held = builders.lease(1, gpu_rate=builders.per_hour("0.20"), state_since=builders.ago(minutes=50))
    assert "interruptible on runpod" in costs([ASK], last_look(is_there=True, age=1.0, ago=0.5), held)
    assert "interruptible on runpod" not in costs([ASK], last_look(is_there=False, age=1.0, ago=0.5), held)
