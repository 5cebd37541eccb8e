"""Instances are asked for by their ids in turn, so that a request that always fails keeps no other one waiting."""

from typing import cast

from agent.clock import SteadyClock, SteppedClock
from agent.domain.market.instance import Instance
from agent.domain.market.market_rules import MarketRules
from agent.markets import market_errors, port
from agent.observe.poller import LOOKS_AT_ONCE, Poller
from tests.support import builders

IDS = [f"{number:03}" for number in range(3 * LOOKS_AT_ONCE)]


class Answers:
    """A market that shows none of its first instances."""

    name = "vast"

    def __init__(self, broken: int) -> None:
        self.broken = frozenset(IDS[:broken])
        self.asked: list[str] = []

    def rules(self) -> MarketRules:
        return MarketRules()

    async def instance(self, instance_id: str) -> Instance:
        self.asked.append(instance_id)
        if instance_id in self.broken:
            raise market_errors.Unavailable("it answered 500")
        return builders.instance(instance_id=instance_id)


def poller_of(market: Answers) -> tuple[Poller, SteppedClock]:
    clock = SteppedClock(builders.NOW)
    return Poller(cast("port.Market", market), SteadyClock(clock), "", lambda _: ""), clock


async def test_those_behind_requests_that_fail_are_asked_for_too() -> None:
    poller, clock = poller_of(market := Answers(broken=LOOKS_AT_ONCE + 4))
    for _ in range(3):
        await poller.look_at([each for each in IDS if each not in poller.view.looks])
        clock.advance(60)
    assert set(poller.view.looks) == set(IDS) - market.broken


async def test_each_turn_asks_for_a_bounded_number_and_the_longest_unasked_first() -> None:
    poller, clock = poller_of(market := Answers(broken=len(IDS)))
    for turn in range(6):
        await poller.look_at(IDS)
        clock.advance(60)
        first = turn % 3 * LOOKS_AT_ONCE
        assert market.asked[-LOOKS_AT_ONCE:] == IDS[first : first + LOOKS_AT_ONCE]
    assert len(market.asked) == 6 * LOOKS_AT_ONCE
