"""Beliefs about pools, and the choices of the kernel for several pools in cases with a known answer."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.deadline import hazards, multi_pool_dp, multi_pool_policy, sized_cache
from agent.domain.market.tenure import Tenure

KNOWN = hazards.OF_SEVERAL
BID, ASK = Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND
NEVER_LOST = hazards.Hazards((0.0,), (1e-9,), (1e-9,))
EDGES = (0.0, 0.5)
LOSSES, RETURNS = (1.2, 0.4), (1.9, 0.5)


def standing(**more: float) -> multi_pool_policy.JobState:
    given_ = {"left": 10.0, "todo": 4.0, "pool": -1, "where": -1, "warming": 0.0, "overhead": 0.5, "gap": 0.25}
    given_ |= {"span": 10.0, "room": 6.0} | more
    return multi_pool_policy.JobState(tenure=None, **given_)  # type: ignore[arg-type]


def pool(
    price: float, *, is_up: bool = True, egress: float = 0.0, known: hazards.Hazards = KNOWN
) -> multi_pool_policy.Pool:
    return multi_pool_policy.Pool(price, hazards.first(known, is_up=is_up, age=1.0), egress)


def key(prices: Sequence[float], egress: float = 0.0, **more: float) -> multi_pool_dp.TableKey:
    tiers = tuple(multi_pool_dp.Tier(price, 0.0, 1, LOSSES, RETURNS) for price in prices)
    moves = tuple(tuple(0.0 if one == other else egress for other in tiers) for one in tiers)
    spans = {"overhead": 0.2, "stage": 1 / 3, "left": 8.0, "slack": 4.0} | more
    return multi_pool_dp.TableKey(EDGES, 1, tiers, moves, 3.0, grain=2, **spans)


def followed(seen: Sequence[bool], known: hazards.Hazards = KNOWN) -> hazards.Belief:
    belief = hazards.first(known, is_up=True, age=hazards.FIRST_AGE_HOURS)
    for is_up in seen:
        belief = hazards.observe(known, belief, is_up=is_up, hours=0.25)
    return belief


@given(st.lists(st.booleans(), max_size=60))
def test_a_pool_of_several_has_the_hazards_by_which_deadline_learns_one(seen: list[bool]) -> None:
    belief = followed(seen, hazards.SHIPPED)
    weights, age = belief.weights(hazards.SHIPPED), hazards.SHIPPED.bin(belief.age)
    rates = hazards.SHIPPED.loss_rates if belief.is_up else hazards.SHIPPED.return_rates
    assert belief.rate(hazards.SHIPPED) == pytest.approx(float(rates[age] @ weights))
    assert 0.0 <= belief.later(hazards.SHIPPED, 4.0) <= 1.0


def test_long_capacity_speaks_for_few_losses_and_flapping_for_many() -> None:
    steady, flapping = followed([True] * 48), followed([turn % 3 == 0 for turn in range(48)])
    assert steady.factors(KNOWN)[0] < 0.7
    assert flapping.factors(KNOWN)[0] > 2.0
    assert steady.later(KNOWN, 4.0) > 0.7 > flapping.later(KNOWN, 4.0)


def test_wider_bins_lose_as_many_of_the_spells_that_reach_their_end() -> None:
    wide = KNOWN.with_edges((0.0, 0.5, 2.0))
    assert wide.losses[0] == pytest.approx(1.17 / 3 + 0.875 * 2 / 3, rel=0.05)
    assert wide.losses[2] < KNOWN.losses[4]
    assert KNOWN.with_edges(KNOWN.edges).losses == pytest.approx(KNOWN.losses)


def test_where_nothing_is_ever_lost_a_job_costs_its_work_and_one_start() -> None:
    made = multi_pool_policy.choose(standing(), [pool(1.0, known=NEVER_LOST)], 3.0, np.zeros((1, 1)), NEVER_LOST)
    assert (made.tenure, made.pool) == (BID, 0)
    assert made.costs[BID, 0] == pytest.approx(4.5, rel=0.02)
    assert made.costs[ASK, -1] == pytest.approx(5.5, rel=0.1)  # a start on demand, and soon over to the cheap pool


def test_where_nothing_is_ever_there_it_takes_on_demand_and_what_that_costs_is_known() -> None:
    away = pool(1.0, is_up=False, known=NEVER_LOST)
    made = multi_pool_policy.choose(standing(), [away], 3.0, np.zeros((1, 1)), NEVER_LOST)
    assert made.costs[ASK, -1] == pytest.approx(13.5, rel=0.02)


@pytest.mark.parametrize(("egress", "first"), [(0.0, 1), (50.0, 0)])
def test_a_cheaper_pool_is_worth_a_move_or_not_by_its_egress(egress: float, first: int) -> None:
    moves = np.array([[0.0, egress], [egress, 0.0]])
    pools = [pool(1.0, known=NEVER_LOST), pool(0.5, egress=egress, known=NEVER_LOST)]
    made = multi_pool_policy.choose(standing(where=0.0), pools, 3.0, moves, NEVER_LOST)
    assert (made.tenure, made.pool) == (BID, first)


def test_no_slack_is_no_choice() -> None:
    pools = [pool(0.01)]
    tight = standing(todo=9.5, room=0.5)
    assert multi_pool_policy.choose(tight, pools, 3.0, np.zeros((1, 1))).tenure is ASK


def test_a_wait_that_leaves_no_time_for_a_start_costs_what_on_demand_costs() -> None:
    restless = hazards.Hazards((0.0,), (1.0,), (1000.0,))
    nearly_late = standing(left=8.55, todo=8.0, span=9.0, room=1.0, overhead=0.2, gap=0.05)
    made = multi_pool_policy.choose(nearly_late, [pool(1.0, known=restless)], 3.0, np.zeros((1, 1)), restless)
    assert made.costs[None, -1] == pytest.approx(3.0 * 8.2, rel=1e-3)
    assert made.costs[ASK, -1] == pytest.approx(3.0 * 8.2, rel=1e-3)


def test_pools_near_in_price_that_are_free_to_move_between_are_one_place() -> None:
    moves = np.array([[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]], dtype=float)
    assert multi_pool_policy.places([1.0, 1.0, 1.02, 2.0], moves) == [(0,), (1, 2), (3,)]
    assert multi_pool_policy.places([1.0, 1.0], np.array([[0.0, 0.0], [1.0, 0.0]])) == [(0,), (1,)]
    assert multi_pool_policy.places([1.0], np.zeros((1, 1))) == [(0,)]


def test_a_job_begins_where_another_pool_of_the_region_is_spare_and_waits_there_while_it_can() -> None:
    moves = np.array([[0.0, 0.0, 9.0], [0.0, 0.0, 9.0], [9.0, 9.0, 0.0]])
    roomy = {"left": 20.0, "span": 20.0, "todo": 8.0, "room": 12.0}
    pools = [pool(1.0), pool(1.0), pool(1.0)]
    assert multi_pool_policy.choose(standing(**roomy), pools, 3.0, moves).pool in {0, 1}
    lost = [pool(1.0, is_up=False), pool(1.0, is_up=False), pool(1.0, egress=9.0)]
    assert multi_pool_policy.choose(standing(**roomy, where=0), lost, 3.0, moves).tenure is None


def test_tables_are_kept_up_to_so_many_bytes_and_the_last_asked_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose checkpoint lies on its disk has another overhead, and so another table, at every look."""
    kept = sized_cache.SizedCache(multi_pool_dp.Table, multi_pool_dp.MOST_BYTES)
    monkeypatch.setattr(multi_pool_dp, "tables", kept)

    def asked(overhead: float) -> multi_pool_dp.Table:
        return multi_pool_dp.table(key((1.0, 2.0), overhead=overhead, left=2.0, slack=1.0))

    first = asked(0.2)
    kept.most_bytes = 3 * first.size
    others = [asked(0.2 + turn / 100) for turn in (1, 2)]
    assert asked(0.2) is first
    asked(0.23)
    assert asked(0.2) is first
    assert asked(0.22) is others[1]
    assert asked(0.21) is not others[0]
    for turn in range(20):
        asked(0.2 + turn / 1000)
    assert kept.size <= kept.most_bytes


def test_a_table_is_never_cheaper_with_less_slack_or_a_dearer_tier() -> None:
    def table(price: float) -> multi_pool_dp.Table:
        return multi_pool_dp.Table(key((price, 2.0), egress=1.0))

    cheap, dear = table(1.0), table(1.5)
    first = cheap.kept[-1]
    assert all((np.diff(values, axis=-1) <= 1e-3).all() for values in cheap.values.values())
    assert (dear.values[first] >= cheap.values[first] - 1e-3).all()
    assert math.isfinite(float(dear.values[first].max()))
    for chain in cheap.chains:
        assert np.allclose(chain.free.sum(axis=1), 1.0, atol=1e-5)
        assert np.allclose((chain.keeps + chain.loses).sum(axis=1)[chain.is_up], 1.0, atol=1e-5)


def test_of_stages_long_before_the_end_some_are_kept_and_those_between_are_told_by_both() -> None:
    table = multi_pool_dp.Table(key((1.0,)))
    assert table.kept == [*range(7), *range(9, 25, 3), 25]
    assert [table.around(stages) for stages in (0.4, 1.0, 4.25, 10.0, 11.5, 99.0)] == [
        (1, 2, 0.0),
        (1, 2, 0.0),
        (4, 5, 0.25),
        (10, 13, 0.0),
        (10, 13, 0.5),
        (26, 26, 0.0),
    ]


def test_a_wait_costs_its_look() -> None:
    moves = np.array([[0.0, 1.0], [1.0, 0.0]])
    pools = [pool(1.0, is_up=False), pool(1.6, egress=1.0)]

    def chosen(look: float) -> multi_pool_policy.Choice:
        at = standing(where=0, look=look, left=60.0, todo=4.0, span=60.0, room=56.0)
        return multi_pool_policy.choose(at, pools, 9.0, moves)

    free = chosen(0.0)
    assert free.tenure is None
    more = free.costs[BID, 1] - free.costs[None, -1]
    assert chosen(0.9 * more).tenure is None
    assert (chosen(1.1 * more).tenure, chosen(1.1 * more).pool) == (BID, 1)
