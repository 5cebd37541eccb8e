"""The rules of one auction, as the vendor's documents state them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.simulator.mithril import auction
from agent.simulator.mithril.auction import Claim

MINIMUM = 1
cheap = settings(max_examples=60, deadline=None, database=None)
claims = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 6), st.booleans()), max_size=12).map(
    lambda rows: [Claim(key, *row[:2], float(key), may_win=row[2]) for key, row in enumerate(rows)]
)


def claim(key: int, limit: int, quantity: int = 1) -> Claim:
    return Claim(key, limit, quantity, float(key))


def test_a_bid_over_the_price_and_under_the_lowest_winner_loses_and_is_the_new_price() -> None:
    holders, loser, ours = [claim(1, 2000), claim(2, 1600)], claim(3, 1300), claim(4, 1301)
    before = auction.clear(2, [*holders, loser], MINIMUM)
    assert (before.price_cents, before.lowest_cents) == (1300, 1600)
    after = auction.clear(2, [*holders, loser, ours], MINIMUM)
    assert ours in after.losers
    assert (after.price_cents, after.lowest_cents) == (1301, 1600)
    assert auction.price_to_win(2, [*holders, loser], MINIMUM, 1) == 1601


def test_of_equal_limits_the_earlier_bid_wins() -> None:
    outcome = auction.clear(1, [claim(2, 500), claim(1, 500)], MINIMUM)
    assert [winner.key for winner in outcome.winners] == [1]
    assert outcome.price_cents == 500


def test_all_or_nothing_and_nobody_is_allocated_below_the_price() -> None:
    outcome = auction.clear(4, [claim(1, 900, 3), claim(2, 500, 2), claim(3, 400)], MINIMUM)
    assert [winner.key for winner in outcome.winners] == [1]
    assert outcome.price_cents == 500


def test_without_a_loser_everybody_pays_the_minimum() -> None:
    assert auction.clear(4, [claim(1, 900, 3)], MINIMUM).price_cents == MINIMUM
    assert auction.clear(4, [], MINIMUM).lowest_cents is None


@cheap
@given(claims, st.integers(0, 12))
def test_one_price_that_no_winner_exceeds_and_no_loser_would_pay_more_than(bids: list[Claim], capacity: int) -> None:
    outcome = auction.clear(capacity, bids, MINIMUM)
    assert sum(winner.quantity for winner in outcome.winners) <= capacity
    assert all(winner.limit_cents >= outcome.price_cents for winner in outcome.winners)
    sized = [loser for loser in outcome.losers if loser.quantity <= capacity]
    assert outcome.price_cents == max([MINIMUM, *(loser.limit_cents for loser in sized)])
    assert sorted([*outcome.winners, *outcome.losers], key=lambda one: one.key) == bids


@cheap
@given(claims, st.integers(0, 12), st.integers(1, 6))
def test_the_price_to_win_is_the_lowest_limit_that_wins(bids: list[Claim], capacity: int, quantity: int) -> None:
    price = auction.price_to_win(capacity, bids, MINIMUM, quantity)
    limits = [
        limit
        for limit in range(MINIMUM, 45)
        if (ours := Claim(99, limit, quantity, 99.0)) in auction.clear(capacity, [*bids, ours], MINIMUM).winners
    ]
    assert price == (limits[0] if limits else None)
    assert limits == ([] if price is None else list(range(price, 45)))
