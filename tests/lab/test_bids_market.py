"""The market in memory against the same market over HTTP, read by the adapter: the same rows, the same decisions."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from agent import strategy_files
from agent.clock import SteppedClock
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.work.decision import Decision, Hold, Rebid, Rent
from agent.lab.bids import bid_baselines, day
from agent.lab.engine.engine import at_once
from agent.markets import pace, port, transport
from agent.markets.vast import client, market
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.lab.waited_market import Waited, loop_beside
from tests.support.steered import Simulator

TUNED = strategy_files.load() | bid_baselines.tuned()
QUERY = port.OfferQuery(
    day.workload("").requirements, 40.0, gpu_models=day.workload("").requirements.gpu_models, max_rows=64
)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop beside the test."""
    with loop_beside() as made:
        yield made


@pytest.fixture
def over_http(loop: asyncio.AbstractEventLoop) -> Iterator[Callable[[day.Setting, str], day.Day]]:
    """Return what builds a day that is lived through HTTP and the vendor's adapter."""
    ends: list[Callable[[], Any]] = []

    def build(setting: day.Setting, strategy: str) -> day.Day:
        world, clock = setting.world, SteppedClock(day.START)
        simulator = Simulator(world, clock, seed=setting.seed)
        asyncio.run_coroutine_threadsafe(simulator.start(), loop).result(10)
        lanes, rows = pace.Pace(clock, {}), pace.RowBudget(clock, 10**6)
        link = transport.Transport(simulator.vast_url, lambda: DEFAULT_KEY, clock, lanes, lambda: 0.5)
        adapter = market.VastMarket(client.VastClient(link, lanes, rows, clock), rows, clock)
        ends.extend([simulator.stop, adapter.close])
        through: Any = Waited(adapter, loop)
        return day.Day(setting, strategy, TUNED, world=world, through=through, clock=clock)

    yield build
    for end in reversed(ends):
        asyncio.run_coroutine_threadsafe(end(), loop).result(10)


Build = Callable[[day.Setting, str], day.Day]


def told(lived: day.Day) -> list[str]:
    """Return each decision with its time, its reason in full, and its object."""
    return [f"{at:%H:%M:%S} {type(each).__name__} {each.reason} {about(each)}" for at, each in lived.engine.decisions]


def about(decision: Decision) -> str:
    if isinstance(decision, Rent):
        return f"{decision.offer} {decision.bid} {decision.rate}"
    bid = decision.bid if isinstance(decision, Rebid) else None
    return "" if isinstance(decision, Hold) else f"{decision.lease.lease_id} {bid}"


@pytest.mark.parametrize(("climate", "seed"), [("bidding_war", 2), ("price_spike", 6)])
def test_both_show_the_same_offers_instances_and_events(over_http: Build, climate: str, seed: int) -> None:
    setting = day.Setting(climate, seed, 5.0)
    # A baseline, whose decisions no tuning of ours changes.
    there, here = over_http(setting, "ladder"), day.Day(setting, "ladder", TUNED)
    states = set()
    while here.clock.now() < setting.end:
        there.step()
        here.step()
        rows = at_once(here.market.instances())
        assert [plain(row) for row in at_once(there.engine.market.instances())] == [plain(row) for row in rows]
        states |= {row.state for row in rows}
    assert told(there) == told(here)
    found = {offer.offer_id: offer for offer in at_once(here.market.offers(QUERY))}
    assert {offer.offer_id: offer for offer in at_once(there.engine.market.offers(QUERY))} == found
    events = at_once(here.market.events(day.START))
    assert list(at_once(there.engine.market.events(day.START))) == list(events)
    assert found
    assert events
    assert InstanceState.RUNNING in states
    assert len(told(here)) > 1


def plain(row: Instance) -> Instance:
    """Return a row without texts and addresses: the market in memory has none."""
    return msgspec.structs.replace(row, message="", address="", ports="")
