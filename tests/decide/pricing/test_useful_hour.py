"""The cost of a useful hour, against numeric integration and its own monotonicity."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.decide.pricing import useful_hour
from agent.decide.pricing.gamma_distribution import Gamma
from agent.decide.pricing.useful_hour import Way
from agent.domain import money
from agent.domain.market.host import HostRecord
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.guard_terms import GuardTerms
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload, WorkloadKind
from tests.support import builders

hazards = st.floats(0, 5)
horizons = st.floats(0.1, 24)
STEPS = 2000


def integral(hazard: float, horizon: float) -> tuple[float, float]:
    """Return (mean of a lifetime cut at the horizon, chance that it ended before), by Simpson over its survival."""
    width = horizon / STEPS
    survival = [math.exp(-hazard * width * step) for step in range(STEPS + 1)]
    inner = 4 * math.fsum(survival[1:-1:2]) + 2 * math.fsum(survival[2:-1:2])
    return (survival[0] + inner + survival[-1]) * width / 3, 1 - survival[-1]


@given(hazards, horizons)
def test_a_stay_is_the_integral_of_its_survival(hazard: float, horizon: float) -> None:
    hours, loss = useful_hour.stay(hazard, horizon)
    expected_hours, expected_loss = integral(hazard, horizon)
    assert hours == pytest.approx(expected_hours, rel=1e-6)
    assert loss == pytest.approx(expected_loss, abs=1e-9)


def test_a_stay_without_hazard_lasts() -> None:
    assert useful_hour.stay(0.0, 6.0) == (6.0, 0.0)


@given(st.floats(1e-12, 1e-6), horizons)
def test_a_tiny_hazard_costs_no_precision(hazard: float, horizon: float) -> None:
    hours, loss = useful_hour.stay(hazard, horizon)
    assert hours == pytest.approx(horizon, rel=1e-4)
    assert loss == pytest.approx(hazard * horizon, rel=1e-4)


@pytest.mark.parametrize(
    ("hazard", "losses", "exposure", "expected_hours"),
    [
        (0.5, 20.0, 2.0, 0.09973904031351469),
        (0.02, 12.3, 0.5, 0.04420487473043578),
        (0.5, 10.0, 2.0, 0.1978582652812922),
        (0.1, 3.0, 2.0, 0.8595253012269957),
        (0.02, 0.3, 2.0, 11.704565976903927),
    ],
)
def test_a_contested_day_is_as_long_as_an_adaptive_integral_says(
    hazard: float, losses: float, exposure: float, expected_hours: float
) -> None:
    """Expected hours are those of scipy 1.17's `integrate.quad` at a relative error of 1e-12.

    Where `losses` is whole, the closed form over `special.expn` gives the same to 1e-14. Eight points were 3.1 % low in
    the first row and 1.4 % in the second.
    """
    assert useful_hour.lasting(hazard, Gamma(losses, exposure), 24.0)[0] == pytest.approx(expected_hours, rel=1e-5)


@given(st.floats(0, 0.5), st.floats(0, 20), st.floats(2, 200), horizons)
@example(0.5, 20.0, 2.0, 24.0)
def test_a_contested_stay_is_the_integral_of_its_survival(
    hazard: float, losses: float, exposure: float, horizon: float
) -> None:
    hours, loss = useful_hour.lasting(hazard, Gamma(losses, exposure), horizon)
    width = horizon / STEPS
    survival = [math.exp(-hazard * at) * (1 + at / exposure) ** -losses for at in (width * n for n in range(STEPS + 1))]
    inner = 4 * math.fsum(survival[1:-1:2]) + 2 * math.fsum(survival[2:-1:2])
    assert hours == pytest.approx((survival[0] + inner + survival[-1]) * width / 3, rel=1e-5)
    assert loss == pytest.approx(1 - survival[-1], abs=1e-9)


def test_who_has_stood_long_is_taken_less_often() -> None:
    fresh = useful_hour.contested(None, 0.5)
    stood = useful_hour.contested(HostRecord("vast", "h1", bid_seconds=10 * 3600), 0.5)
    assert (
        useful_hour.lasting(0.0, stood, 24.0)[0]
        > useful_hour.lasting(0.0, fresh, 24.0)[0]
        > useful_hour.stay(0.5, 24.0)[0]
    )


@given(st.floats(0, 1), st.integers(0, 50), st.floats(0, 10**7))
def test_a_hosts_hazard_lies_between_what_it_says_and_what_it_did(said: float, lost: int, seconds: float) -> None:
    prior = useful_hour.host_hazard(said, None)
    record = HostRecord("vast", "h1", running_seconds=seconds, interruptions=lost)
    posterior = useful_hour.host_hazard(said, record)
    hours = seconds / 3600
    if hours:
        least, most = sorted((prior, lost / hours))
        assert least - 1e-12 <= posterior <= most * (1 + 1e-9) + 1e-12
    assert useful_hour.host_hazard(said, msgspec.structs.replace(record, interruptions=lost + 1)) > posterior


def test_a_host_that_is_up_half_the_time_fails_every_other_outage() -> None:
    assert useful_hour.host_hazard(0.5, None) == pytest.approx(1 / useful_hour.OUTAGE_HOURS)
    assert useful_hour.host_hazard(0.0, None) == useful_hour.host_hazard(0.5, None)


def test_an_empty_record_changes_nothing() -> None:
    assert useful_hour.host_hazard(0.98, HostRecord("vast", "h1")) == pytest.approx(useful_hour.host_hazard(0.98, None))
    assert useful_hour.start_success(HostRecord("vast", "h1")) == useful_hour.start_success(None) == 0.9


def test_a_long_record_outweighs_the_prior() -> None:
    assert useful_hour.market_hazard(0, 0) == pytest.approx(0.15)
    assert useful_hour.market_hazard(500, 1000) == pytest.approx(0.5, rel=0.01)
    assert useful_hour.start_success(HostRecord("vast", "h1", starts_failed=990)) == pytest.approx(0.009)


def test_loading_counts_gigabytes_over_megabits() -> None:
    assert useful_hour.loading_hours(9.0, 200.0) * 3600 == pytest.approx(360 + useful_hour.CONTAINER_SECONDS)
    assert useful_hour.loading_hours(1.0, 0.0) == useful_hour.loading_hours(1.0, 1.0)


def reckon(offer: Offer, way: Way, work: Workload, record: HostRecord | None, loss: float) -> useful_hour.StayCost:
    """Return the expected cost and yield of a stay under one tenure."""
    return useful_hour.stay_cost(offer, work, record, loss)(way)


def reckoned(offer: Offer | None = None, rate: str = "0.22", work: Workload | None = None, loss: float = 0.15) -> float:
    """Return dollars per useful DLPerf-hour."""
    way = Way(Tenure.INTERRUPTIBLE, builders.per_hour(rate))
    return reckon(offer or builders.offer(), way, work or builders.workload(), None, loss).per_useful


def test_a_reckoning_by_hand() -> None:
    work = builders.workload(checkpoint=Checkpoint(timedelta(minutes=30), timedelta(0), 2.0, CheckpointPlace.REMOTE))
    offer = builders.offer(reliability=0.5, inet_down_mbps=1e12, storage_micros_per_gb_month=720_000)
    found = reckon(offer, Way(Tenure.ON_DEMAND, builders.per_hour("0.40")), work, None, 99.0)
    hours = (1 - math.exp(-0.5 * 24)) / 0.5
    loading = useful_hour.CONTAINER_SECONDS / 3600 / 0.9
    assert found.hazard == pytest.approx(0.5)
    assert found.gpu_dollars == pytest.approx(0.40 * hours)
    assert found.disk_dollars == pytest.approx(0.02 * (hours + loading))
    assert found.traffic_dollars == pytest.approx(7.0 / 0.9 * 0.005)
    assert found.idle_dollars == pytest.approx(loading)
    assert found.lost_hours == pytest.approx((1 - math.exp(-12)) * 0.25)
    assert found.useful_hours == pytest.approx(hours - found.lost_hours)
    assert found.per_useful_hour == pytest.approx(found.dollars / found.useful_hours)
    assert found.score == pytest.approx(80 / found.per_useful_hour)


def test_checkpoints_that_leave_a_cloud_cost_what_the_operator_says_and_none_on_the_disk_do() -> None:
    kept = Checkpoint(timedelta(minutes=30), timedelta(0), 2.0, CheckpointPlace.REMOTE)
    dear = builders.offer(egress_micros_per_gb=90_000)
    way = Way(Tenure.ON_DEMAND, builders.per_hour("0.40"))
    found = reckon(dear, way, builders.workload(checkpoint=kept), None, 0.1)
    assert found.egress_dollars == pytest.approx(2 * 2.0 * 0.09 * found.gpu_dollars / 0.40)
    assert {term.name: term.figure for term in found.terms()}["checkpoints out of the cloud"] == found.egress_dollars
    on_disk = builders.workload(checkpoint=replace(kept, place=CheckpointPlace.DISK))
    assert reckon(dear, way, on_disk, None, 0.1).egress_dollars == 0.0
    lossless = builders.workload(checkpoint=replace(kept, interval=timedelta()))
    assert reckon(dear, way, lossless, None, 0.1).egress_dollars == 0.0


def test_every_figure_of_a_reckoning_is_told() -> None:
    found = reckon(builders.offer(), Way(Tenure.ON_DEMAND, builders.per_hour("0.4")), builders.workload(), None, 0.1)
    told = {term.name: term.figure for term in found.terms()}
    assert told["gpu"] + told["disk"] + told["traffic"] + told["idle while loading"] == pytest.approx(found.dollars)
    assert told["score"] == found.score
    assert len(told) == 11


offers = st.builds(
    builders.offer,
    dlperf=st.floats(0, 500),
    reliability=st.floats(0, 1),
    inet_down_mbps=st.floats(0, 10_000),
    ask=st.none() | st.builds(money.UsdPerHour, st.integers(1, 5_000_000)),
    floor=st.none() | st.builds(money.UsdPerHour, st.integers(1, 5_000_000)),
    storage_micros_per_gb_month=st.integers(0, 2_000_000),
    traffic_down_micros_per_gb=st.integers(0, 50_000),
)
checkpoints = st.builds(
    Checkpoint,
    interval=st.timedeltas(timedelta(0), timedelta(days=1)),
    restore=st.timedeltas(timedelta(0), timedelta(hours=30)),
    size_gb=st.floats(0, 100),
    place=st.sampled_from(CheckpointPlace),
)
workloads = st.builds(
    builders.workload,
    checkpoint=checkpoints,
    image_gb=st.floats(0, 50),
    disk_gb=st.floats(0, 500),
    max_price=st.builds(money.UsdPerHour, st.integers(0, 10_000_000)),
)
records = st.none() | st.builds(
    HostRecord,
    st.just("vast"),
    st.just("h1"),
    running_seconds=st.floats(0, 10**7),
    interruptions=st.integers(0, 100),
    starts_ok=st.integers(0, 100),
    starts_failed=st.integers(0, 100),
)


@given(offers, workloads, records, st.floats(0, 5), st.floats(0, 2), st.integers(0, 3_000_000))
def test_the_bound_is_below_every_way_of_paying_at_least_the_cheaper_price(
    offer: Offer, work: Workload, record: HostRecord | None, loss: float, scale: float, over: int
) -> None:
    bound = useful_hour.least_per_dlperf(offer)
    rates = [rate for rate in (offer.ask, offer.floor) if rate is not None]
    if not rates:
        assert bound == math.inf
        return
    for tenure in (Tenure.ON_DEMAND, Tenure.INTERRUPTIBLE):
        way = Way(tenure, min(rates) + money.UsdPerHour(over), scale)
        assert bound <= reckon(offer, way, work, record, loss).per_useful * (1 + 1e-12)


@given(offers, workloads, records, st.floats(0, 5))
def test_a_reckoning_is_sound(offer: Offer, work: Workload, record: HostRecord | None, loss: float) -> None:
    found = reckon(offer, Way(Tenure.INTERRUPTIBLE, builders.per_hour("0.3")), work, record, loss)
    hours = found.gpu_dollars / 0.3
    assert 0 < hours <= useful_hour.HORIZON_HOURS * (1 + 1e-9)
    assert 0 < found.useful_hours <= hours * (1 + 1e-9)
    assert 0 <= found.lost_hours <= hours / 2 * (1 + 1e-9)
    assert 0 <= found.restore_hours <= 0.9 * hours * (1 + 1e-9)
    assert math.isfinite(found.per_useful)
    assert found.per_useful > 0


@given(offers, workloads, records, st.floats(0, 5), st.floats(0, 30), st.sampled_from(Tenure))
def test_a_reckoning_by_another_restore_is_that_of_the_workload_with_it(
    offer: Offer, work: Workload, record: HostRecord | None, loss: float, claimed: float, tenure: Tenure
) -> None:
    way = Way(tenure, builders.per_hour("0.3"))
    shorter = replace(work.checkpoint, restore=min(timedelta(hours=claimed), work.checkpoint.restore))
    truly = reckon(offer, way, work, record, loss)
    found = reckon(offer, way, replace(work, checkpoint=shorter), record, loss)
    assert found.by(shorter).per_useful == pytest.approx(found.per_useful, rel=1e-9)
    assert found.by(work.checkpoint).per_useful == pytest.approx(truly.per_useful, rel=1e-9)
    assert truly.by(shorter).per_useful == pytest.approx(truly.per_useful, rel=1e-9), "a shorter one is never taken"


@given(offers, workloads, st.floats(0, 3), st.floats(0.001, 2))
def test_the_cost_rises_with_price_and_hazard(offer: Offer, work: Workload, loss: float, more: float) -> None:
    assert reckoned(offer, "0.30", work, loss) > reckoned(offer, "0.22", work, loss)
    assert reckoned(offer, "0.22", work, loss + more) >= reckoned(offer, "0.22", work, loss) * (1 - 1e-12)


@given(offers, workloads)
def test_the_cost_rises_with_storage_and_loading(offer: Offer, work: Workload) -> None:
    dearer = builders.offer(
        dlperf=offer.dlperf,
        reliability=offer.reliability,
        inet_down_mbps=offer.inet_down_mbps / 2,
        storage_micros_per_gb_month=offer.storage_micros_per_gb_month + 100_000,
        traffic_down_micros_per_gb=offer.traffic_down_micros_per_gb + 1000,
    )
    assert reckoned(dearer, "0.22", work) >= reckoned(offer, "0.22", work) * (1 - 1e-12)


def test_without_checkpoints_a_loss_loses_half_the_stay() -> None:
    work = builders.workload(checkpoint=Checkpoint(restore=timedelta(0), place=CheckpointPlace.NONE))
    found = reckon(builders.offer(), Way(Tenure.INTERRUPTIBLE, builders.per_hour("0.2")), work, None, 0.5)
    hours = found.gpu_dollars / 0.2
    assert found.lost_hours == pytest.approx(found.hazard * hours * hours / 2)


def test_a_host_never_benchmarked_is_last_and_harmless() -> None:
    unknown = builders.offer(dlperf=0.0)
    assert useful_hour.least_per_dlperf(unknown) == pytest.approx(0.2 / 1e-6)
    assert math.isfinite(reckoned(unknown))


def test_data_that_must_move_is_priced_by_the_byte_and_by_the_time_it_takes() -> None:
    dear = builders.offer(traffic_down_micros_per_gb=20_000)
    way = useful_hour.Way(Tenure.ON_DEMAND, builders.per_hour("0.40"))
    plain = builders.workload(checkpoint=Checkpoint(size_gb=2.0, place=CheckpointPlace.REMOTE))
    full = replace(plain, dataset_gb=100.0)
    without, with_data = (reckon(dear, way, work, None, 0.15) for work in (plain, full))
    tries = 1 / useful_hour.start_success(None)
    assert plain.moved_gb == 7.0
    assert with_data.traffic_dollars - without.traffic_dollars == pytest.approx(100 * 0.02 * tries)
    assert with_data.loading_hours - without.loading_hours == pytest.approx(100 * 8000 / 800 / 3600 * tries)
    assert with_data.per_useful > without.per_useful


def test_a_checkpoint_on_the_disk_that_is_left_is_not_carried() -> None:
    work = builders.workload(checkpoint=Checkpoint(size_gb=2.0, place=CheckpointPlace.DISK))
    assert work.moved_gb == work.image_gb


def test_a_short_task_pays_its_traffic_by_itself_unless_its_host_goes_on_with_others() -> None:
    """A cheap host with dear traffic is best for a day and not for half an hour."""
    cheap = builders.offer(1, traffic_down_micros_per_gb=50_000)
    dear = builders.offer(2, traffic_down_micros_per_gb=0)

    def is_cheap_best(**changes: Any) -> bool:
        work = builders.workload(kind=WorkloadKind.BATCH, image_gb=5.0, **changes)
        return reckoned(cheap, "0.20", work) < reckoned(dear, "0.24", work)

    short = ArrayTerms(2, task_hours=0.5)
    assert is_cheap_best()
    assert is_cheap_best(array=ArrayTerms(2))
    assert is_cheap_best(array=ArrayTerms(2, task_hours=24.0))
    assert not is_cheap_best(array=short)
    assert is_cheap_best(array=short, guard=GuardTerms(("/w",), keep_host=True))
