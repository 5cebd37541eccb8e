"""Beliefs over regimes, and the choices of the kernel for several pools in cases with a known answer."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide.deadline import multi_pool_dp, multi_pool_policy, regimes, sized_cache
from agent.domain.market.tenure import Tenure

KNOWN = regimes.SHIPPED
BID, ASK = Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND
NEVER_LOST = regimes.Regimes(((1e-9, 1e-9, 1e-9, 1e-9),), (1.0,))


def standing(**more: float) -> multi_pool_policy.JobState:
    given_ = {"left": 10.0, "todo": 4.0, "pool": -1, "where": -1, "warming": 0.0, "overhead": 0.5, "gap": 0.25}
    given_ |= {"span": 10.0, "room": 6.0} | more
    return multi_pool_policy.JobState(tenure=None, **given_)  # type: ignore[arg-type]


def pool(
    price: float, *, is_up: bool = True, egress: float = 0.0, known: regimes.Regimes = KNOWN
) -> multi_pool_policy.Pool:
    return multi_pool_policy.Pool(price, regimes.first(known, is_up=is_up), egress)


@given(st.lists(st.booleans(), max_size=60), st.sampled_from([0.05, 0.25, 1.0, 6.0]))
def test_a_belief_is_shares_of_regimes_whatever_was_seen(seen: list[bool], hours: float) -> None:
    belief = regimes.first(KNOWN, is_up=True)
    for is_up in seen:
        belief = regimes.observe(KNOWN, belief, is_up=is_up, hours=hours)
    assert belief.shares.sum() == pytest.approx(1.0)
    assert (belief.shares > 0).all()
    assert belief.vector(KNOWN).sum() == pytest.approx(1.0)


def test_long_capacity_speaks_for_the_good_regime_and_many_losses_for_the_poor_one() -> None:
    steady = flapping = regimes.first(KNOWN, is_up=True)
    for turn in range(48):
        steady = regimes.observe(KNOWN, steady, is_up=True, hours=0.25)
        flapping = regimes.observe(KNOWN, flapping, is_up=turn % 3 == 0, hours=0.25)
    losses = KNOWN.rates[:, regimes.UP + 1]
    assert steady.shares[losses.argmin()] > 0.6
    assert flapping.shares[losses.argmin()] < 0.2
    assert steady.later(KNOWN, 4.0) > 0.8 > flapping.later(KNOWN, 4.0)


def test_evidence_wears_off() -> None:
    belief = regimes.first(KNOWN, is_up=True)
    assert np.allclose(belief.shares @ KNOWN.turns(1000.0), KNOWN.prior)


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


def test_pools_near_in_price_that_are_free_to_move_between_are_one_place() -> None:
    moves = np.array([[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]], dtype=float)
    assert multi_pool_policy.places([1.0, 1.0, 1.02, 2.0], moves) == [(0,), (1, 2), (3,)]
    assert multi_pool_policy.places([1.0, 1.0], np.array([[0.0, 0.0], [1.0, 0.0]])) == [(0,), (1,)]
    assert multi_pool_policy.places([1.0], np.zeros((1, 1))) == [(0,)]


def test_a_job_begins_where_another_pool_of_the_region_is_spare_and_waits_there_while_it_can() -> None:
    moves = np.array([[0.0, 0.0, 9.0], [0.0, 0.0, 9.0], [9.0, 9.0, 0.0]])
    roomy = {"left": 40.0, "span": 40.0, "todo": 8.0, "room": 32.0}
    pools = [pool(1.0), pool(1.0), pool(1.0)]
    assert multi_pool_policy.choose(standing(**roomy), pools, 3.0, moves).pool in {0, 1}
    lost = [pool(1.0, is_up=False), pool(1.0, is_up=False), pool(1.0, egress=9.0)]
    assert multi_pool_policy.choose(standing(**roomy, where=0), lost, 3.0, moves).tenure is None


def test_tables_are_kept_up_to_so_many_bytes_and_the_last_asked_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose checkpoint lies on its disk has another overhead, and so another table, at every look."""
    kept = sized_cache.SizedCache(multi_pool_dp.Table, multi_pool_dp.MOST_BYTES)
    monkeypatch.setattr(multi_pool_dp, "tables", kept)

    def asked(overhead: float) -> multi_pool_dp.Table:
        tiers = (multi_pool_dp.Tier(1.0, 0.0, 1), multi_pool_dp.Tier(2.0, 0.0, 1))
        none = ((0.0, 0.0), (0.0, 0.0))
        key = multi_pool_dp.TableKey(KNOWN, tiers, none, 3.0, overhead, 1 / 3, 1 / 6, 2.0, 1.0, 2)
        return multi_pool_dp.table(key, key.left)

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
        tiers = (multi_pool_dp.Tier(price, 0.0, 1), multi_pool_dp.Tier(2.0, 0.0, 1))
        egress = ((0.0, 1.0), (1.0, 0.0))
        made = multi_pool_dp.Table(multi_pool_dp.TableKey(KNOWN, tiers, egress, 3.0, 0.2, 1 / 3, 1 / 6, 8.0, 4.0, 2))
        made.reach(9.0)
        return made

    cheap, dear = table(1.0), table(1.5)
    first = cheap.kept[-1]
    assert all((np.diff(values, axis=-1) <= 1e-3).all() for values in cheap.values.values())
    assert (dear.values[first] >= cheap.values[first] - 1e-3).all()
    assert math.isfinite(float(dear.values[first].max()))
    for chain in cheap.chains:
        assert np.allclose(chain.free.sum(axis=1), 1.0, atol=1e-5)
        leased = (chain.keeps + chain.loses).sum(axis=1).reshape(KNOWN.count, regimes.STATES)
        assert np.allclose(leased[:, : regimes.DOWN], 1.0, atol=1e-5)


@pytest.mark.parametrize("egress", [0.0, 1.0])
@pytest.mark.parametrize("tiers", [1, 2])
@settings(max_examples=25)
@given(st.lists(st.floats(0.0, 9.0), max_size=4))
def test_a_table_is_the_same_whatever_jobs_looked_at_it_before(egress: float, tiers: int, lefts: list[float]) -> None:
    """Stages are computed when they are first looked at, so jobs with equal keys may begin in any order."""
    moves = tuple(tuple(egress * (here != there) for there in range(tiers)) for here in range(tiers))
    some = tuple(multi_pool_dp.Tier(1.0 + tier, 0.3, 2) for tier in range(tiers))
    key = multi_pool_dp.TableKey(KNOWN, some, moves, 3.0, 0.2, 1 / 3, 1 / 6, 8.0, 2.0, 1)
    whole, parts = multi_pool_dp.Table(key), multi_pool_dp.Table(key)
    for made, asked in ((whole, [9.0]), (parts, [*lefts, 9.0])):
        for left in asked:
            made.reach(left)
    assert list(parts.values) == list(whole.values) == whole.kept
    assert all(parts.values[stage].tobytes() == whole.values[stage].tobytes() for stage in whole.kept)
    assert whole.size == sum(values.nbytes for values in whole.values.values())


def test_a_job_that_has_begun_computes_the_stages_that_it_looks_at_and_no_more() -> None:
    tiers = (multi_pool_dp.Tier(1.0, 0.0, 1),)
    table = multi_pool_dp.Table(multi_pool_dp.TableKey(KNOWN, tiers, ((0.0,),), 3.0, 0.2, 1 / 3, 1 / 6, 8.0, 4.0, 2))
    for left, last in ((0.1, 1), (3.0, 9), (2.0, 9), (9.0, 25)):
        table.reach(left)
        assert list(table.values)[-1] == last
    assert {low - 1 for low, _, _ in map(table.around, range(26))} <= set(table.values)


def test_a_kept_table_that_grows_displaces_those_not_asked_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = sized_cache.SizedCache(multi_pool_dp.Table, multi_pool_dp.MOST_BYTES)
    monkeypatch.setattr(multi_pool_dp, "tables", kept)

    def key(price: float) -> multi_pool_dp.TableKey:
        tiers = (multi_pool_dp.Tier(price, 0.0, 1),)
        return multi_pool_dp.TableKey(KNOWN, tiers, ((0.0,),), 3.0, 0.2, 1 / 3, 1 / 6, 8.0, 4.0, 2)

    begun = [multi_pool_dp.table(key(price), 1.0) for price in (1.0, 1.1, 1.2)]
    grown = multi_pool_dp.Table(key(1.2))
    grown.reach(8.0)
    kept.most_bytes = begun[1].size + grown.size
    multi_pool_dp.table(key(1.2), 8.0)
    assert kept.size == kept.most_bytes
    assert [multi_pool_dp.table(key(price), 1.0) for price in (1.1, 1.2)] == begun[1:]
    assert multi_pool_dp.table(key(1.0), 1.0) is not begun[0]


def test_of_stages_long_before_the_end_some_are_kept_and_those_between_are_told_by_both() -> None:
    tiers = (multi_pool_dp.Tier(1.0, 0.0, 1),)
    table = multi_pool_dp.Table(multi_pool_dp.TableKey(KNOWN, tiers, ((0.0,),), 3.0, 0.2, 1 / 3, 1 / 6, 8.0, 4.0, 2))
    assert table.kept == [*range(7), *range(9, 25, 3), 25]
    assert [table.around(stages) for stages in (0.4, 1.0, 4.25, 10.0, 11.5, 99.0)] == [
        (1, 2, 0.0),
        (1, 2, 0.0),
        (4, 5, 0.25),
        (10, 13, 0.0),
        (10, 13, 0.5),
        (26, 26, 0.0),
    ]


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[multi_pool_dp.TableKey]:
    """The keys of all tables that are built from now on."""
    found: list[multi_pool_dp.TableKey] = []

    def build(key: multi_pool_dp.TableKey) -> multi_pool_dp.Table:
        found.append(key)
        return multi_pool_dp.Table(key)

    monkeypatch.setattr(multi_pool_dp, "tables", sized_cache.SizedCache(build, multi_pool_dp.MOST_BYTES))
    return found


@pytest.mark.parametrize("egress", [0.0, 0.5])
def test_an_ask_that_moves_by_a_tenth_of_a_cent_needs_no_new_table(
    builds: list[multi_pool_dp.TableKey], egress: float
) -> None:
    """Each build takes seconds of the cycle in which a job of two days sees the new ask."""
    moves = np.array([[0.0, egress], [egress, 0.0]])
    pools = [pool(0.2), pool(0.3, is_up=False)]
    for mils in range(657, 665):
        multi_pool_policy.choose(standing(where=0), pools, mils / 1000, moves)
    assert len(builds) == 1


def test_reports_of_progress_need_few_new_tables_while_the_overhead_grows(
    builds: list[multi_pool_dp.TableKey],
) -> None:
    """It grows from 0.35 h with a fresh checkpoint to 0.6 h with one that is due: a report each minute."""
    for minutes in range(16):
        at = standing(overhead=0.35 + minutes / 60)
        multi_pool_policy.choose(at, [pool(0.2)], 0.66, np.zeros((1, 1)))
        assert builds[-1].overhead >= at.overhead - 1e-9, "a start is never taken for shorter than it is"
    assert len(builds) <= 6


@pytest.mark.parametrize("overhead", [0.05, 0.1, 0.2, 0.25, 0.4])
def test_the_overheads_of_the_lab_are_exact(builds: list[multi_pool_dp.TableKey], overhead: float) -> None:
    multi_pool_policy.choose(standing(overhead=overhead), [pool(1.0)], 3.0, np.zeros((1, 1)))
    assert builds[0].overhead == pytest.approx(overhead, abs=1e-9)


@given(st.floats(1e-3, 200.0))
def test_an_overhead_is_rounded_up_by_three_minutes_or_a_sixteenth_at_most(hours: float) -> None:
    at = standing(left=1e4, span=1e4, room=1e4, overhead=hours)
    tiers = [multi_pool_policy._Tier((0,), 0)]
    key = multi_pool_policy._table_key(at, tiers, [pool(1.0)], 3.0, np.zeros((1, 1)), KNOWN)
    assert hours - 1e-4 <= key.overhead <= hours + max(multi_pool_policy.OVERHEAD_STEP, hours / 16)


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
