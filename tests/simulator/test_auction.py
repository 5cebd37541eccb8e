import math

from hypothesis import given
from hypothesis import strategies as st

from agent.simulator.vast import auction, hosts
from agent.simulator.vast.model import Rival, Slice
from tests.support import quiet

HOST = quiet.world().slices
ANY_HOST = next(slice_.host for slice_ in HOST.values() if slice_.num_gpus == 8)


def claim(first: int, size: int, per_gpu: float, *, running: bool = False, since: float = 0.0) -> auction.Claim:
    gpus = tuple(range(first, first + size))
    holder = Rival(0, Slice(0, 1, ANY_HOST, gpus), per_gpu * size, since, math.inf)
    return auction.Claim(holder, gpus, per_gpu, running, since)


CLAIMS = st.lists(
    st.builds(
        lambda block, price, running, since: claim(block[0], block[1], price, running=running, since=since),
        st.sampled_from([(0, 8), (0, 4), (4, 4), (0, 2), (2, 2), (4, 2), (0, 1), (1, 1), (7, 1)]),
        st.one_of(st.just(auction.ALWAYS), st.integers(1, 500).map(lambda cents: cents / 100)),
        st.booleans(),
        st.floats(0, 100),
    ),
    max_size=8,
)


@given(CLAIMS)
def test_no_gpu_is_given_twice_and_none_is_left_that_somebody_waits_for(claims: list[auction.Claim]) -> None:
    won = auction.winners(claims)
    given_out = [gpu for winner in won for gpu in winner.gpus]
    assert len(given_out) == len(set(given_out))
    for loser in claims:
        if loser not in won:
            assert not set(loser.gpus).isdisjoint(given_out)


@given(CLAIMS)
def test_nobody_loses_to_a_lower_bid(claims: list[auction.Claim]) -> None:
    won = auction.winners(claims)
    for loser in claims:
        if loser not in won:
            winner = auction.in_the_way(loser.gpus, won)
            assert winner is not None
            assert winner.per_gpu >= loser.per_gpu


@given(CLAIMS, st.sampled_from([(0, 8), (0, 4), (4, 2), (0, 1)]), st.floats(0.01, 4.0))
def test_the_price_to_win_wins_and_a_tick_less_does_not(
    claims: list[auction.Claim], block: tuple[int, int], floor: float
) -> None:
    standing = auction.winners(claims)
    running = [auction.Claim(one.holder, one.gpus, one.per_gpu, is_running=True, since=one.since) for one in standing]
    price = auction.price_to_win(range(block[0], block[0] + block[1]), floor, running)
    if price is None:
        assert any(one.per_gpu == auction.ALWAYS for one in running)
        return
    assert price >= floor
    mine = claim(*block, price / block[1], since=200.0)
    assert mine in auction.winners([*running, mine])
    if price > floor:
        less = claim(*block, (price - 1.5 * auction.TICK) / block[1], since=200.0)
        assert less not in auction.winners([*running, less])


def test_on_demand_outranks_any_bid_and_the_one_that_runs_stays() -> None:
    bid, newcomer = claim(0, 4, 100.0, running=True), claim(0, 1, auction.ALWAYS, since=5.0)
    assert auction.winners([bid, newcomer]) == [newcomer]
    first, second = claim(0, 1, auction.ALWAYS, running=True, since=9.0), claim(0, 1, auction.ALWAYS, since=1.0)
    assert auction.winners([second, first]) == [first]


def test_between_equal_bids_the_one_that_runs_stays() -> None:
    old, new = claim(0, 2, 0.5, running=True, since=9.0), claim(0, 2, 0.5, since=1.0)
    assert auction.winners([new, old]) == [old]


def test_sizes_of_hosts_are_shares() -> None:
    assert math.isclose(sum(share for share, _ in hosts.SIZES), 1.0)
