"""What holds in the simulated Mithril whatever its renters do, and whenever: capacity, states, prices and the bill."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.simulator import climate_files
from agent.simulator.mithril.model import Bid, Status, Terms
from agent.simulator.mithril.world import World
from tests.support.auctions import A100
from tests.support.market import START

HELD = {Status.ALLOCATED, Status.PREEMPTING}
deeds = st.lists(
    st.tuples(
        st.sampled_from(("place", "raise", "pause", "resume", "end", "rival", "reserve", "fail")),
        st.integers(0, 5),
        st.integers(30, 400),
        st.sampled_from((1.0, 90.0, 130.0, 450.0, 7_200.0)),
    ),
    max_size=25,
)


def do(world: World, deed: str, which: int, cents: int) -> None:
    """Do one deed of ours, or of others, in the pool that has figures recorded."""
    pool, desk = world.pools[A100], world.desk
    if deed == "place":
        desk.place(Terms(f"bid-{len(world.bids)}", world.project, pool.pool, cents, 1 + which % 3))
    elif deed == "rival":
        world.add_rival(pool.pool.fid, cents, 1 + which)
    elif deed == "reserve":
        world.reserve(pool.pool.fid, 1 + which, 600.0)
    elif which < len(live := world.live_contracts()):
        bid = live[which]
        if deed == "raise":
            desk.reprice(bid, bid.limit_cents + cents)
        elif deed == "fail":
            world.set_host_gone(bid.host.machine_id)
        else:
            {"pause": desk.pause, "resume": desk.resume, "end": desk.terminate}[deed](bid)


def billed(world: World, bid: Bid) -> float:
    """Return the dollars of a bid by its bill."""
    periods = [period for vm in bid.vms for period in vm.prices]
    return math.fsum(one.cents * ((one.end or world.now) - one.start) for one in periods) / 360_000.0


@settings(max_examples=40, deadline=None, database=None)
@given(deeds, st.integers(0, 3))
def test_capacity_states_prices_and_bills_agree(played: list[tuple[str, int, int, float]], seed: int) -> None:
    world = World(climate_files.named("second_price"), seed=seed, start=START)
    pool = world.pools[A100]
    for deed, which, cents, seconds in played:
        do(world, deed, which, cents)
        world.advance_to(world.now + seconds)
        assert sum(one.quantity for one in pool.bidders() if one.is_holding) <= pool.pool.total
        world.charged_total()
        for bid in world.bids.values():
            assert bid.holds_gpu == (bid.status in HELD)
            assert (bid.notice_at is not None) == (bid.status is Status.PREEMPTING)
            assert (bid.rate > 0.0) == bid.holds_gpu
            assert len([vm for vm in bid.live_vms if vm.prices and vm.prices[-1].end is None]) in (0, bid.quantity)
            assert all(one.cents <= bid.limit_cents for vm in bid.vms for one in vm.prices)
            assert bid.charged["gpu"] == pytest.approx(billed(world, bid))
