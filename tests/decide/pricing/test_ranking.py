"""The ranking yields the order of a plain sort of everything, without looking at everything."""

from collections.abc import Sequence
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide.pricing import offer_refusal, ranking, useful_hour
from agent.decide.pricing.offer_refusal import OrderedOffers, Unavailable
from agent.decide.pricing.useful_hour import Way
from agent.decide.strategy import Candidate
from agent.domain.market.host import HostKey, HostRecord
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Fallback, Workload
from tests.support import builders

NOW = builders.NOW
LOSS = 0.2


def both_ways(candidate: Offer, /) -> Sequence[Way]:
    found = [(Tenure.INTERRUPTIBLE, candidate.floor), (Tenure.ON_DEMAND, candidate.ask)]
    return [Way(tenure, rate) for tenure, rate in found if rate is not None]


def ranked(
    offers: Sequence[Offer],
    work: Workload,
    hosts: dict[HostKey, HostRecord],
    taken: Unavailable = Unavailable(),  # noqa: B008
) -> list[Candidate]:
    return list(ranking.ranking(OrderedOffers(offers), work, both_ways, ranking.Judged(hosts), taken, NOW, LOSS))


def brute_force(
    offers: Sequence[Offer], work: Workload, hosts: dict[HostKey, HostRecord], taken: Unavailable
) -> list[tuple[float, str]]:
    """Reckon every way of every offer that is not refused and sort."""
    found = []
    for offer in offers:
        if offer_refusal.refusal(offer, work, NOW, taken) is None:
            reckon = useful_hour.stay_cost(offer, work, hosts.get(offer.host), LOSS)
            costs = [reckon(way).per_useful for way in both_ways(offer)]
            found += [(min(costs), offer.offer_id)] if costs else []
    return sorted(found)


rates = st.none() | st.builds(UsdPerHour, st.integers(1_000, 2_000_000))


@st.composite
def markets(draw: st.DrawFn) -> list[Offer]:
    return [
        builders.offer(
            number,
            host_id=f"h{draw(st.integers(0, 8))}",
            gpus=draw(st.sampled_from([1, 1, 1, 2])),
            dlperf=draw(st.sampled_from([0.0, 1e-9, 40.0, 80.0, 200.0])),
            reliability=draw(st.floats(0, 1)),
            inet_down_mbps=draw(st.sampled_from([1.0, 50.0, 800.0])),
            ask=draw(rates),
            floor=draw(rates),
            is_rentable=draw(st.integers(0, 5)) > 0,
            is_verified=draw(st.integers(0, 5)) > 0,
        )
        for number in range(draw(st.integers(0, 25)))
    ]


records = st.dictionaries(
    st.sampled_from([HostKey("vast", f"h{number}") for number in range(9)]),
    st.builds(
        HostRecord,
        st.just("vast"),
        st.just("h"),
        running_seconds=st.floats(0, 10**6),
        interruptions=st.integers(0, 30),
        starts_failed=st.integers(0, 9),
    ),
)
takens = st.builds(
    Unavailable,
    st.frozensets(st.sampled_from([HostKey("vast", f"h{number}") for number in range(9)]), max_size=4),
    st.dictionaries(st.sampled_from(["offer:vast/a1", "host:vast/h2"]), st.just("x")),
)


@settings(max_examples=200)
@given(markets(), records, takens)
@pytest.mark.nightly
def test_the_order_is_that_of_sorting_everything(
    offers: list[Offer], hosts: dict[HostKey, HostRecord], taken: Unavailable
) -> None:
    work = builders.workload()
    found = ranked(offers, work, hosts, taken)
    assert [(one.reckoning.per_useful, one.offer.offer_id) for one in found] == brute_force(offers, work, hosts, taken)


@given(markets(), takens)
def test_a_refused_offer_is_never_yielded(offers: list[Offer], taken: Unavailable) -> None:
    work = builders.workload()
    for found in ranked(offers, work, {}, taken):
        assert offer_refusal.refusal(found.offer, work, NOW, taken) is None


@given(markets())
def test_of_an_offers_ways_the_cheapest_is_taken(offers: list[Offer]) -> None:
    work = builders.workload()
    for found in ranked(offers, work, {}):
        reckon = useful_hour.stay_cost(found.offer, work, None, LOSS)
        for way in both_ways(found.offer):
            other = reckon(way)
            assert found.reckoning.per_useful <= other.per_useful


def test_an_offer_that_cannot_be_paid_is_left_out() -> None:
    assert ranked([builders.offer(ask=None, floor=None)], builders.workload(), {}) == []


def test_equal_offers_come_in_the_order_of_their_ids() -> None:
    twins = [builders.offer(number, offer_id=name) for number, name in enumerate(["b", "c", "a"])]
    assert [found.offer.offer_id for found in ranked(twins, builders.workload(), {})] == ["a", "b", "c"]


def test_the_same_offer_twice_is_no_trouble() -> None:
    twice = [builders.offer(1), builders.offer(1), builders.offer(2), builders.offer(1)]
    assert len(ranked(twice, builders.workload(), {})) == 4


def test_the_search_stops_once_nothing_left_can_be_better() -> None:
    asked: list[str] = []

    def counting(candidate: Offer, /) -> Sequence[Way]:
        asked.append(candidate.offer_id)
        return both_ways(candidate)

    offers = [builders.offer(number, floor=UsdPerHour(100_000 + number * 10_000)) for number in range(200)]
    search = ranking.ranking(
        OrderedOffers(offers), builders.workload(), counting, ranking.Judged({}), Unavailable(), NOW, LOSS
    )
    assert [found.offer.offer_id for found in islice(search, 2)] == ["a0", "a1"]
    assert len(asked) < 20


def test_a_replay_reads_a_search_once_for_all() -> None:
    offers = [builders.offer(number, floor=UsdPerHour(100_000 + number * 10_000)) for number in range(30)]
    plain = ranked(offers, builders.workload(), {})
    replay = ranking.Replay(iter(plain))
    first, second = iter(replay), iter(replay)
    by_turns = [(next(first), next(second)) for _ in range(10)]
    assert all(one is other for one, other in by_turns)
    assert list(replay) == plain
    assert [*(one for one, _ in by_turns), *first] == plain
    costs = [found.reckoning.per_useful for found in replay]
    assert all(left <= right for left, right in pairwise(costs))


def test_a_question_is_all_that_a_ranking_depends_on() -> None:
    work = builders.workload()
    alike = builders.workload("other", slots=4, command="python", strategy="ondemand")
    assert ranking.question(work, both_ways) == ranking.question(alike, both_ways)
    for changes in (
        {"disk_gb": 21.0},
        {"image_gb": 6.0},
        {"dataset_gb": 6.0},
        {"max_price": builders.per_hour("0.9")},
        {"markets": ("runpod",)},
        {"markets": ("vast",), "fallback": Fallback(("dstack",))},
        {"may_lose_disk": not work.may_lose_disk, "checkpoint": Checkpoint(place=CheckpointPlace.DISK)},
        {"ready": Readiness(ReadySign.HTTP, port=80)},
        {"array": ArrayTerms(8, task_hours=0.5)},
        {"requirements": builders.requirements(gpus=2)},
        {"checkpoint": builders.workload().checkpoint.__class__()},
    ):
        assert ranking.question(builders.workload(**changes), both_ways) != ranking.question(work, both_ways)
