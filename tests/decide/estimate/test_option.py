"""The cost of an option: published scenarios with their arithmetic, and properties of every estimate."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.baselines import baseline_loading
from agent.decide.deadline import hazards
from agent.decide.estimate import option
from agent.decide.estimate.job import Job, Reruns, by_odds
from agent.decide.estimate.option import Hazard, Option
from agent.decide.pricing.gamma_distribution import Gamma
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.tenure import Tenure
from agent.domain.work.workload import CheckpointPlace

BASELINES = baseline_loading.load()


def job(gpus: int = 1, work: float = 24.0, model: str = "A100", **more: object) -> Job:
    return dataclasses.replace(Job(gpu.model(model), gpus, work, restore=0.0, image_gb=0.0), **more)  # type: ignore[arg-type]


def bid(rate: float, hazard: Gamma | float = 0.0, **more: object) -> Option:
    made = Option(
        "a bid", Tenure.INTERRUPTIBLE, (money.per_hour(rate),), Hazard(hazard), 0.0, 0.0, 0.0, 0.1, ("a test",)
    )
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def dollars(cloud: str, gpus: int, work: float, model: str = "A100", sold_in: int = 1) -> tuple[float, float]:
    figure = next(
        one
        for one in BASELINES.find(model, cloud, Tenure.ON_DEMAND)
        if one.sold_in == sold_in and one.least == one.most
    )
    found = option.of_baseline(job(gpus, work, model), figure)
    assert found.dollars is not None
    assert found.dollars_p90 is not None
    return found.dollars, found.dollars_p90


def test_scenario_ten_hours_a_week_on_one_a100() -> None:
    # 10 h x 3.44 = 34.40 a week at AWS (A100 80GB SXM); 10 h x 1.79 = 17.90 at Lambda;
    # 10 h x 1.19 = 11.90 at RunPod's community cloud; a bid of 0.64 that is never outbid: 10 h x 0.64 = 6.40.
    assert dollars("aws", 1, 10, "A100 SXM4") == (34.40, 34.40)
    assert dollars("lambda", 1, 10, "A100 SXM4")[0] == 17.90
    assert dollars("runpod", 1, 10, "A100 PCIE")[0] == 11.90
    found = option.estimate(job(1, 10), bid(0.64))
    assert found.dollars == pytest.approx(10 * 0.64) == pytest.approx(6.40)
    # A year has 365.25 / 7 = 52.18 weeks: 34.40 x 52.18 = 1,795 against 6.40 x 52.18 = 334.
    weeks = 365.25 / 7
    assert round(dollars("aws", 1, 10 * weeks, "A100 SXM4")[0]) == 1795
    assert round(option.estimate(job(1, 10 * weeks), bid(0.64)).dollars or 0) == 334


def test_scenario_eight_a100_for_a_day() -> None:
    # 24 h x 32.80 = 787.20 at AWS, a whole node; 24 h x 8 x 0.80 = 153.60 at 0.80 per GPU-hour.
    assert dollars("aws", 8, 24, sold_in=8) == (787.20, 787.20)
    found = option.estimate(job(8, 24), bid(8 * 0.80))
    assert found.dollars == pytest.approx(153.60)
    assert found.dollars_p90 == pytest.approx(153.60)


def test_scenario_a_20b_run_and_its_reruns() -> None:
    # 500 h x 16 x 2.75 = 22,000 for the run that succeeds; experiments that fail double or triple it.
    found = option.estimate(job(16, 500, reruns=Reruns(2, 3, None)), bid(16 * 2.75))
    assert found.dollars == pytest.approx(22_000)
    assert [round((found.dollars or 0) * factor) for factor in (2, 3)] == [44_000, 66_000]


def test_odds_of_success_are_geometric() -> None:
    assert by_odds(1.0) == Reruns(1.0, 1.0, 1.0)
    # One in two: 2 tries in the mean; three tries fail one time in eight, four one in sixteen.
    assert by_odds(0.5) == Reruns(1.0, 4.0, 2.0)
    assert by_odds(0.8) == Reruns(1.0, 2.0, 1.25)


def test_storage_and_traffic_are_counted_for_as_long_and_as_often_as_they_are_paid() -> None:
    work = job(1, 10, image_gb=5.0, checkpoint_gb=2.0)
    calm = option.estimate(work, bid(1.0, storage=0.01, per_gb=0.02, loading=0.5))
    # 10 h x 1.00, 10.5 h x 0.01 while it loads too, one image of 5 GB x 0.02; nothing was saved yet to be fetched.
    assert calm.dollars == pytest.approx(10 + 0.105 + 0.1)
    rough = option.estimate(work, bid(1.0, 0.2, storage=0.01, per_gb=0.02, loading=0.5))
    assert rough.interruptions is not None
    assert rough.transfer_dollars == pytest.approx(0.02 * (5 + 7 * rough.interruptions))
    data = option.estimate(dataclasses.replace(work, dataset_gb=3.0), bid(1.0, 0.2, storage=0.01, per_gb=0.02))
    assert data.transfer_dollars == pytest.approx(0.02 * (8 + 10 * rough.interruptions))
    on_disk = option.estimate(
        dataclasses.replace(work, place=CheckpointPlace.DISK), bid(1.0, 0.2, storage=0.01, per_gb=0.02)
    )
    assert on_disk.transfer_dollars == pytest.approx(0.1)


def test_without_checkpoints_a_short_record_bears_no_expectation() -> None:
    work = job(1, 24, place=CheckpointPlace.NONE)
    found = option.estimate(work, bid(0.64, Gamma(1.8, 12.0)))
    assert (found.dollars, found.hours, found.interruptions) == (None, None, None)
    assert found.dollars_least == pytest.approx(24 * 0.64)
    assert any("24.00 h without a checkpoint" in line for line in found.unknown)
    assert option.estimate(work, bid(0.64, Gamma(18.0, 1200.0))).dollars is not None


def test_the_best_interval_is_used_where_none_is_given() -> None:
    work = job(1, 100, write=0.02)
    found = option.estimate(work, bid(1.0, 0.1))
    # M = 1 / 0.1 = 10 h: sqrt(2 x 0.02 x 10) = 0.6325; r = 0.02 / 20; 0.6325 (1 + sqrt(r)/3 + r/9) - 0.02 = 0.6192.
    assert found.interval == found.daly == pytest.approx(0.6192, abs=1e-4)
    assert found.young == pytest.approx(math.sqrt(2 * 0.02 / 0.1))
    assert found.young is not None
    assert found.daly is not None
    # Capacity at a bid is lost by its age: times 0.1 an hour, from the fitted shape.
    assert found.by_age[0][0] == 0.0
    assert found.by_age[0][1] == pytest.approx(found.young / math.sqrt(hazards.SHIPPED.shape[0][1]))
    assert found.by_age[-1][1] > found.daly > found.by_age[0][1]
    worse = option.estimate(dataclasses.replace(work, interval=5.0), bid(1.0, 0.1))
    assert (worse.dollars or 0) > (found.dollars or 0)


def test_a_deadline_tells_how_likely_it_is_missed() -> None:
    rough = bid(1.0, 0.2, down=0.5)
    late = [option.estimate(job(1, 10, deadline=hours), rough).late or 0.0 for hours in (9.9, 10.5, 12, 30)]
    assert late[0] == 1.0
    assert late == sorted(late, reverse=True)
    assert late[-1] < 0.01


def test_a_published_range_and_an_unknown_rate_of_interruptions_are_said() -> None:
    ranged = next(one for one in BASELINES.find("A100 PCIE", "aws", Tenure.ON_DEMAND) if one.most > one.least)
    found = option.of_baseline(job(1, 10), ranged)
    assert (found.dollars, found.dollars_p90) == (30.60, 73.50)
    spot = option.of_baseline(job(1, 10), BASELINES.cheapest("aws", "A100", Tenure.INTERRUPTIBLE))
    assert (spot.dollars, spot.dollars_p90, spot.dollars_least, spot.interruptions) == (None, None, 15.0, None)
    assert "how often it is interrupted there is not known" in spot.unknown


def test_a_reservation_is_paid_for_its_whole_term() -> None:
    reserved = BASELINES.cheapest("coreweave", "H100", Tenure.RESERVED)
    found = option.of_baseline(job(1, 800), dataclasses.replace(reserved, term_days=30))
    assert (found.dollars, found.dollars_p90, found.hours) == (2.23 * 1440, 2.23 * 1440, 800)
    assert "reserved for 30 days: 1440 h are paid for, used or not" in found.unknown
    unknown = option.of_baseline(job(1, 800), reserved)
    assert (unknown.dollars, unknown.dollars_p90, unknown.dollars_least) == (None, None, 2.23 * 800)


def test_every_estimate_of_a_baseline_carries_its_date_and_source() -> None:
    for figure in BASELINES.figures:
        found = option.of_baseline(job(8, 24), figure)
        assert figure.dated in found.cited[0]
        assert figure.source in found.cited[0]


@given(
    st.floats(0.5, 200),
    st.floats(0.05, 20),
    st.sampled_from([0.0, 0.05, 0.3, Gamma(1.8, 12.0), Gamma(9.0, 400.0)]),
    st.floats(0.05, 2),
)
def test_expectation_and_percentile_are_never_under_the_uninterrupted_run(
    work: float, rate: float, hazard: Gamma | float, interval: float
) -> None:
    found = option.estimate(job(1, work, interval=interval), bid(rate, hazard, storage=0.01, per_gb=0.01))
    assert found.dollars is not None
    assert found.dollars_p90 is not None
    assert found.dollars >= found.dollars_least - 1e-6
    assert found.dollars_p90 >= found.dollars_least - 1e-6


@pytest.mark.parametrize(("shape", "weight"), [(0.5, 3.3), (1.5, 10.0), (15.0, 100.0)])
@pytest.mark.parametrize("work", [2.0, 20.0, 100.0])
def test_twice_the_cases_of_an_uncertain_hazard_move_little(
    monkeypatch: pytest.MonkeyPatch, shape: float, weight: float, work: float
) -> None:
    made = []
    for cells in (option.CELLS, 2 * option.CELLS):
        monkeypatch.setattr(option, "CELLS", cells)
        long = job(1, work, interval=1.0, checkpoint_gb=2.0, deadline=1.2 * work)
        made.append(option.estimate(long, bid(0.16, Gamma(shape, weight), loading=0.1, down=0.3, storage=0.01)))
    few, many = made
    for name, most in (("dollars", 0.01), ("dollars_p90", 0.01), ("hours", 0.01), ("hours_p90", 0.01)):
        assert getattr(few, name) == pytest.approx(getattr(many, name), rel=most), name
    assert few.interruptions == pytest.approx(many.interruptions, rel=0.014)
    assert few.late == pytest.approx(many.late, abs=0.01)
