"""hedged for a deadline on several markets: a number that says never keeps the lease, whatever a move would save."""

from agent.decide.strategy import NEVER
from agent.domain.work.decision import Hold, Rent
from tests.strategies.test_hedged_markets import decided, offer, on_demand, seen
from tests.support import builders

CHEAPER = [offer(22, "0.66", "0.20"), offer(20, "0.90", "0.45", market="runpod")]


def test_an_on_demand_lease_is_left_for_a_cheap_bid_unless_its_numbers_say_never() -> None:
    fleet = seen(CHEAPER, [on_demand("0.60", state_since=builders.ago(minutes=1))])
    assert isinstance(decided(fleet), Rent)
    by_time, by_gain = decided(fleet, return_after=NEVER), decided(fleet, return_gain=1.0)
    assert isinstance(by_time, Hold)
    assert ": `return_after` is never; expected to finish for" in by_time.reason.sentence
    assert isinstance(by_gain, Hold)
    assert ": `return_gain` is 1; expected to finish for" in by_gain.reason.sentence


def test_a_bid_is_left_for_a_much_cheaper_one_unless_its_numbers_say_never() -> None:
    held = builders.lease(1, market="runpod", gpu_rate=builders.per_hour("0.80"), state_since=builders.ago(hours=1))
    fleet = seen(CHEAPER, [held])
    assert isinstance(decided(fleet), Rent)
    assert isinstance(decided(fleet, leave_after=NEVER), Hold)
    assert isinstance(decided(fleet, leave_gain=1.0), Hold)
