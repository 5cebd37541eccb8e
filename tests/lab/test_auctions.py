"""Timed auctions in memory: the bill by hand, the fixed rules as written, the adapter's rows, net value compared."""

import asyncio
import math
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent import strategy_files
from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.lab.bench import interval
from agent.lab.bids import day, running_day
from agent.lab.bids.auctions import auction_day, auction_rows, limit_rules
from agent.lab.bids.auctions.auction_day import AuctionDay, Setting
from agent.lab.bids.auctions.auctions_problem import SHARES, AuctionsProblem
from agent.lab.bids.bids_problem import Seeded
from agent.lab.engine.engine import at_once
from agent.markets import port
from agent.markets.mithril import market as adapters
from agent.simulator.climate import Climate, Demand
from agent.simulator.mithril.pool_auction import PoolAuction
from agent.simulator.mithril.world import World
from agent.simulator.vast import world as vast_world
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.lab.waited_market import Waited, loop_beside
from tests.support.steered import Simulator

TUNED = strategy_files.load() | limit_rules.tuned()
MACHINE = "1x A100"
START = running_day.START.timestamp()
STILL = Climate(name="still", demand=Demand(arrivals=0.0), pull_failure_probability=0.0)
VALUE = 1.10


def still(strategy: str, hours: float = 2.0) -> AuctionDay:
    """Return a day on which nothing happens by itself."""
    value = money.per_hour(str(VALUE)) if strategy in strategy_files.load() else None
    setting = Setting("recorded", 1, MACHINE, value, hours, timedelta(minutes=2))
    return AuctionDay(setting, strategy, TUNED, world=World(STILL, seed=1, start=START))


def pools(lived: AuctionDay) -> list[PoolAuction]:
    found = [each for each in lived.world.pools.values() if each.pool.kind.name == "a100-80gb.sxm.1x"]
    return sorted(found, key=lambda each: each.spot_cents)


def run(lived: AuctionDay, minutes: float) -> None:
    until = lived.clock.now() + timedelta(minutes=minutes)
    while lived.clock.now() < until:
        lived.step()


def raise_price(lived: AuctionDay, cents: int) -> None:
    """Let rivals that want all of a pool, and no more, raise every pool's price to `cents`."""
    for each in pools(lived):
        for _ in range(each.pool.total):
            lived.world.add_rival(each.pool.fid, cents + 1, 1)
        lived.world.add_rival(each.pool.fid, cents, 1)


def test_a_winner_pays_the_price_of_each_auction_and_never_its_limit() -> None:
    lived = still("patient")
    cheap = pools(lived)[0]
    told = lived.live()
    (bid,) = lived.world.bids.values()
    assert bid.pool is cheap.pool
    assert bid.limit_cents / 100 > 1.02 > told.charged / 2
    (period,) = bid.vms[0].prices
    seconds = lived.clock.time() - period.start
    assert period.cents == cheap.spot_cents
    assert told.charged == pytest.approx(cheap.spot_cents / 100 * seconds / 3600)
    assert told.split.bill == pytest.approx(told.charged)
    assert told.split.useful_hours == pytest.approx(
        (lived.clock.time() - (bid.running_since or 0.0) - day.CHECKPOINT.restore.total_seconds()) / 3600
    )


def test_above_the_value_value_bidding_lets_go_after_its_notice_and_a_limit_of_32_dollars_pays() -> None:
    net = {}
    for strategy in ("patient", "always_32"):
        lived = still(strategy, hours=3.0)
        run(lived, 50)
        raise_price(lived, 400)
        run(lived, 4)
        if strategy == "patient":
            (row,) = at_once(lived.market.instances())
            assert row.notice_at is not None
            assert row.state is InstanceState.RUNNING
        told = lived.live()
        net[strategy] = VALUE * told.split.useful_hours - told.split.bill
        assert told.losses == (1 if strategy == "patient" else 0)
    assert net["patient"] > 0 > net["always_32"]


def test_a_reservation_takes_the_machine_of_a_low_limit_and_its_bid_returns_with_the_capacity() -> None:
    lived = still("spot_plus_10_once")
    run(lived, 20)
    (bid,) = lived.world.bids.values()
    assert bid.holds_gpu
    pool = lived.world.pools[bid.pool.kind.fid, bid.pool.region]
    lived.world.reserve(bid.pool.fid, pool.capacity - 1, 1800.0)
    run(lived, 10)
    assert not bid.holds_gpu
    told = lived.live()
    assert (told.losses, bid.holds_gpu) == (1, True)
    assert len(bid.vms) == 2


def test_the_fixed_rules_bid_what_they_say() -> None:
    limits = {}
    for strategy in limit_rules.RULES:
        lived = still(strategy)
        run(lived, 6)
        (bid,) = lived.world.bids.values()
        limits[strategy] = bid.limit_cents
    over = math.ceil(pools(still("always_32"))[0].spot_cents * 1.1)
    assert limits == {"spot_plus_10": over, "spot_plus_10_once": over, "always_32": 3200}


def test_only_the_rule_that_follows_bids_again_over_the_price_it_lost_to() -> None:
    found = {}
    for strategy in ("spot_plus_10", "spot_plus_10_once"):
        lived = still(strategy, hours=1.5)
        run(lived, 20)
        (bid,) = lived.world.bids.values()
        before = bid.limit_cents
        raise_price(lived, 90)
        lived.live()
        found[strategy] = bid.limit_cents > before, bid.holds_gpu
    assert found == {"spot_plus_10": (True, True), "spot_plus_10_once": (False, False)}


def plain(row: Instance) -> Instance:
    """Return a row without what a start script says, which is the adapter's own, and without the price."""
    nothing: dict[str, Any] = {
        "disk_gb": 0.0,
        "unread": frozenset(),
        "address": "",
        "ports": "",
        "gpu_rate": money.FREE,
        "price_since": None,
        "bill": None,
    }
    return msgspec.structs.replace(row, **nothing)


def is_settled(lived: AuctionDay, row: Instance) -> bool:
    """Return whether a pool's price is so old that the adapter has read it."""
    pool = next(each for each in lived.world.pools.values() if auction_rows.host_id(each.pool) == row.host_id)
    return lived.world.now - pool.prices[-1][0] >= 240


def test_the_adapter_shows_the_same_pools_bids_and_events_of_the_same_market() -> None:
    clock = SteppedClock(running_day.START)
    setting = Setting("second_price", 4, MACHINE, money.per_hour("0.55"), 8.0, timedelta(minutes=8))
    lived = AuctionDay(setting, "patient", TUNED, clock=clock)
    hosts = vast_world.World(STILL, seed=1, start=START, hosts=2)
    states, priced = set(), 0
    with loop_beside() as loop:
        simulator = Simulator(hosts, clock, seed=4, auctions=lived.world)
        asyncio.run_coroutine_threadsafe(simulator.start(), loop).result(10)
        terrain = adapters.Terrain(disk_micros_per_gb_month=0)
        adapter = adapters.connect(simulator.mithril_url, lambda: DEFAULT_KEY, clock, lambda: 0.5, terrain=terrain)
        there: Any = Waited(adapter, loop)
        try:
            while clock.now() < setting.course.end:
                lived.step()
                rows = at_once(lived.market.instances())
                shown = at_once(there.instances())
                assert [plain(row) for row in shown] == [plain(row) for row in rows]
                rates = [
                    ((one.gpu_rate, one.price_since if one.may_bill_gpu else None), (other.gpu_rate, other.price_since))
                    for one, other in zip(shown, rows, strict=True)
                    if is_settled(lived, one)
                ]
                assert [one for one, _ in rates] == [other for _, other in rates]
                priced += len(rates)
                states |= {row.state for row in rows}
            query = port.OfferQuery(setting.course.work.requirements, 40.0)
            offers = at_once(lived.market.offers(query))
            assert list(at_once(there.offers(query))) == list(offers)
            assert named(at_once(there.events(running_day.START))) == named(
                at_once(lived.market.events(running_day.START))
            )
        finally:
            for end in (adapter.close, simulator.stop):
                asyncio.run_coroutine_threadsafe(end(), loop).result(10)
    assert offers
    assert priced
    assert {InstanceState.RUNNING, InstanceState.PAUSED} <= states


def named(events: Iterable[Any]) -> list[str]:
    return [event.event_id for event in events]


def test_both_say_the_same_rules() -> None:
    assert adapters.MithrilMarket.rules(None) == auction_rows.RULES  # type: ignore[arg-type]


def gap(problem: AuctionsProblem, ours: str, rule: str) -> tuple[float, float]:
    """Return the mean difference of net value to a rule's, and the upper end of its paired interval."""
    cases = problem.cases()
    pairs = [(problem.score(ours, case).figures["net $"], problem.score(rule, case).figures["net $"]) for case in cases]
    differences = [one - other for one, other in pairs]
    high = interval.clustered(differences, [case.cluster for case in cases], 0)[1]
    return sum(differences) / len(differences), high


@pytest.mark.nightly
def test_a_few_short_days_value_bidding_is_not_below_a_fixed_rule_by_net_value() -> None:
    problem = AuctionsProblem(("second_price",), tuple(range(1, 6)), 3.0, 180.0, (MACHINE,), (0.5,))
    for rule in ("spot_plus_10", "always_32"):
        assert gap(problem, "patient", rule)[1] >= 0


@pytest.mark.nightly
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("machine", auction_day.MACHINES)
@pytest.mark.parametrize("climate", ["recorded", "second_price"])
def test_of_twenty_seeds_value_bidding_is_not_below_a_fixed_rule_by_net_value(
    climate: str, machine: str, share: float
) -> None:
    problem = AuctionsProblem((climate,), tuple(range(1, 21)), machines=(machine,), shares=(share,))
    below = {
        f"{ours} less {rule}": found
        for ours in ("patient", "hedged")
        for rule in limit_rules.RULES
        if (found := gap(problem, ours, rule))[1] < 0
    }
    assert not below


def test_a_day_costs_its_bill_and_the_value_of_each_idle_hour() -> None:
    problem = AuctionsProblem(("second_price",), (3,), 1.0, 300.0, (MACHINE,), (0.5,))
    (case,) = problem.cases()
    score = problem.score("always_32", case)
    told = score.figures
    assert problem.value == 0.55
    assert score.cost == pytest.approx(told["$"] + 0.55 * (1.0 - told["useful h"]))
    assert problem.score("spot_hindsight", Seeded("second_price", 3)).cost <= score.cost
