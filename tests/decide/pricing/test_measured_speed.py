"""Measured speeds against DLPerf: they only lower the promised speed, one owner has one voice, few do not count."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing import measured_speed, ranking, useful_hour
from agent.decide.pricing.offer_refusal import OrderedOffers, Unavailable
from agent.decide.strategy import Candidate
from agent.domain import card_benchmarks
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.host_check import HostCheck
from tests.support import builders

CARD = GpuModel("RTX 4090")


def check(number: int, tflops: float | None, *, owner: str = "", dlperf: float = 100.0, **more: int) -> HostCheck:
    return HostCheck(
        f"lease-{number}-{more}", "vast", f"h{number}", owner, CARD, more.get("gpus", 1), dlperf, builders.NOW, tflops
    )


def share(checks: list[HostCheck], number: int) -> float | None:
    return measured_speed.speeds(checks).get((HostKey("vast", f"h{number}"), CARD))


def test_a_slow_host_is_worth_less_and_a_fast_one_no_more_than_promised() -> None:
    checks = [check(1, 100), check(2, 160), check(3, 60)]
    assert (share(checks, 1), share(checks, 2)) == (1.0, 1.0)
    # The promise counts as one check: (1 + 0.6) / 2.
    assert share(checks, 3) == pytest.approx(0.8)
    again = [*checks, replace(checks[2], lease_id="another"), replace(checks[2], lease_id="a third")]
    assert share(again, 3) == pytest.approx((1 + 3 * 0.6) / 4)
    assert share([check(1, 100), check(2, 100), check(3, 0.02)] * 9, 3) == measured_speed.LEAST


def test_a_host_that_promised_less_is_measured_by_its_own_promise() -> None:
    checks = [check(1, 100), check(2, 100), check(3, 60, dlperf=60.0)]
    assert share(checks, 3) == pytest.approx(1.0)
    pair = [check(1, 100), check(2, 100), check(3, 100, dlperf=200.0, gpus=2)]
    assert share(pair, 3) == pytest.approx(1.0)


def test_hosts_of_one_owner_are_one_voice_and_two_voices_say_nothing() -> None:
    many = [check(number, 500, owner="liar") for number in range(10, 30)]
    assert measured_speed.speeds([*many, check(1, 100)]) == {}
    honest = [*many, check(1, 100), check(2, 100)]
    assert share(honest, 1) == 1.0
    usual = measured_speed.typical(honest, CARD, other_than=HostKey("vast", "h1"))
    assert usual is not None
    # The liar is far above the others, so it is left out.
    assert (usual.voices, usual.is_known, usual.figure) == (2, False, 100.0)
    unknown = [check(1, None), check(2, 100), check(3, 100)]
    assert measured_speed.speeds(unknown) == {}


def test_half_of_the_owners_together_do_not_raise_the_median() -> None:
    for lie in (1e5, 250.0):
        checks = [check(1, 100), check(2, 100), check(3, 100), check(4, lie), check(5, lie), check(6, lie)]
        assert [share(checks, number) for number in (1, 2, 3)] == [1.0] * 3
        usual = measured_speed.typical(checks, CARD, HostKey("vast", "h9"))
        assert usual is not None
        assert usual.figure == 100.0


def test_another_host_of_the_same_owner_is_no_other_owner() -> None:
    checks = [check(1, 100, owner="mine"), check(2, 90), check(3, 110)]
    usual = measured_speed.typical(checks, CARD, HostKey("vast", "h7"), "mine")
    assert usual is not None
    assert (usual.voices, usual.is_known) == (2, False)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 8),
            st.one_of(st.none(), st.floats(0, 1e9)),
            st.sampled_from(["", "a", "b"]),
            st.floats(0, 1e6),
        ),
        max_size=30,
    )
)
def test_whatever_hosts_say_none_is_worth_more_than_its_dlperf_nor_less_than_half(
    told: list[tuple[int, float | None, str, float]],
) -> None:
    checks = [
        replace(check(number, tflops, owner=owner, dlperf=dlperf), lease_id=str(place))
        for place, (number, tflops, owner, dlperf) in enumerate(told)
    ]
    assert all(measured_speed.LEAST <= each <= 1.0 for each in measured_speed.speeds(checks).values())


@pytest.mark.parametrize("tflops", [0.0, 5e-324, 1e-300, 1e9])
@pytest.mark.parametrize("dlperf", [0.0, 5e-324, 1e6, 1e300])
def test_a_forged_figure_divides_nothing_by_zero(tflops: float, dlperf: float) -> None:
    checks = [check(number, tflops, dlperf=dlperf) for number in range(5)]
    assert all(measured_speed.LEAST <= each <= 1.0 for each in measured_speed.speeds(checks).values())
    usual = measured_speed.typical(checks, CARD, other_than=HostKey("vast", "h9"))
    assert usual is None or usual.figure >= measured_speed.LEAST_TFLOPS


def ranked(offers: list[Offer], speeds: measured_speed.Speeds) -> list[Candidate]:
    def both(offer: Offer) -> list[useful_hour.Way]:
        return [useful_hour.Way(Tenure.ON_DEMAND, offer.ask)] if offer.ask is not None else []

    work = builders.workload()
    return list(
        ranking.ranking(OrderedOffers(offers), work, both, ranking.Judged({}, speeds), Unavailable(), builders.NOW, 0.1)
    )


@given(st.lists(st.floats(0.5, 50.0), min_size=4, max_size=4))
def test_a_measured_speed_moves_a_host_back_and_none_forward(speeds: list[float]) -> None:
    offers = [builders.offer(number, dlperf=100.0 + number) for number in range(1, 5)]
    found = {(offer.host, offer.gpu): speed for offer, speed in zip(offers, speeds, strict=True)}
    before = {each.offer.offer_id: each.reckoning.per_useful for each in ranked(offers, {})}
    after = ranked(offers, found)
    assert [each.reckoning.per_useful for each in after] == sorted(each.reckoning.per_useful for each in after)
    for each in after:
        speed = min(found[each.offer.host, each.offer.gpu], 1.0)
        assert each.reckoning.per_useful == pytest.approx(before[each.offer.offer_id] / speed)
        assert any(term.name == "measured speed" for term in each.reckoning.terms()) is (speed < 1.0)


def test_a_model_without_a_benchmark_is_measured_against_those_that_have_one() -> None:
    bare, other = GpuModel("A10G"), GpuModel("L4")
    promised = [check(1, 100.0), check(2, 110.0), check(3, 90.0)]
    mine = [replace(check(number, 60.0, dlperf=0.0), gpu=bare) for number in (4, 5, 6)]
    assert measured_speed.benchmarks([*promised, *mine], {bare, other}) == {bare: pytest.approx(60.0)}
    again = [replace(each, dlperf=60.0) for each in mine]
    assert measured_speed.benchmarks([*promised, *again], {bare}) == {bare: pytest.approx(60.0)}, "not its own"
    assert measured_speed.benchmarks(mine, {bare}) == {}, "nothing says what a DLPerf is"
    assert measured_speed.benchmarks([*promised, *mine[:2]], {bare}) == {}, "too few"
    forged = [replace(each, matmul_tflops=90_000.0) for each in mine]
    assert measured_speed.benchmarks([*promised, *forged], {bare}) == {bare: card_benchmarks.MOST}
    assert measured_speed.benchmarks(promised, {bare}) == {}
