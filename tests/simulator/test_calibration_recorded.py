"""The figures in the code against the recordings themselves, where GPUBID_RECORDED names their folder.

The folder may hold more recordings than the code was fitted to: then every figure must still be found in them, and the
simulator's statistics must lie in the intervals of all they hold.
"""

import json
import os
import pathlib
import statistics
from typing import Any

import pytest

from agent.simulator import recorded_figures
from agent.simulator.vast import card_catalogue
from tests.support import intervals, market_statistics
from tests.support.market_statistics import Statistics

FOLDER = os.environ.get("GPUBID_RECORDED", "")
pytestmark = pytest.mark.skipif(
    not FOLDER, reason="GPUBID_RECORDED does not name the folder of recordings: figures were not checked against them"
)


def read(pattern: str) -> list[Any]:
    """Read every recording of a kind; none at all is a failure, not a pass."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(pathlib.Path(FOLDER).glob(pattern))]
    assert found, f"{FOLDER} holds no {pattern}"
    return found


def offers(kind: str | None = None) -> list[dict[str, Any]]:
    return [
        row
        for recording in read("vast/market_offers_*.json")
        for name, rows in recording["offers"].items()
        if kind in (None, name)
        for row in rows
    ]


def notices(kind: str) -> list[dict[str, Any]]:
    rows = [row for inbox in read("vast/notifications_inbox_*.json") for row in inbox["notifications"]]
    return sorted((row for row in rows if row["notif_type"] == kind), key=lambda row: float(row["created_at"]))


def stopped() -> dict[str, Any]:
    (recording,) = read("vast/stopped_resume_stats_*.json")
    assert isinstance(recording, dict)
    return recording


def jumps() -> list[float]:
    return [row["associated_id"]["new_min_bid"] / row["associated_id"]["your_bid"] for row in notices("outbid")]


def assert_recorded(figure: tuple[float, ...], found: list[float], accuracy: float) -> None:
    left = list(found)
    for value in figure:
        match = min(left, key=lambda other: abs(other - value))
        assert match == pytest.approx(value, abs=accuracy)
        left.remove(match)


@pytest.fixture(scope="module")
def drawn() -> Statistics:
    return market_statistics.draw()


def test_offer_figures_are_in_the_files() -> None:
    rows = offers()
    assert_recorded(recorded_figures.RELIABILITY, [row["reliability2"] for row in rows], 1e-9)
    assert_recorded(recorded_figures.SINGLE_GPU_SHARES, [row["gpu_frac"] for row in rows], 1e-9)
    assert_recorded(recorded_figures.STORAGE_PRICES, [row["storage_cost"] for row in rows], 1e-4)
    assert_recorded(recorded_figures.INET_DOWN, [row["inet_down"] for row in rows], 1e-9)
    on_demand = offers("on-demand")
    assert_recorded(recorded_figures.FLOOR_OVER_ASK, [row["min_bid"] / row["dph_base"] for row in on_demand], 1e-6)
    ladder = read("vast/bid_instances_ladder_*.json")[0]["rungs"][-1]["full_record"]
    for model, figure in recorded_figures.DLPERF.items():
        found = [row["dlperf"] for row in [*rows, ladder] if row["gpu_name"] == model]
        assert_recorded(figure, found, 1e-5)
    for model, figure in recorded_figures.ASKS.items():
        found = [row["dph_base"] for row in [*on_demand, ladder] if row["gpu_name"] == model]
        assert_recorded(figure, found, 1e-6)


def test_every_recorded_price_is_round_before_the_fee() -> None:
    for row in offers("on-demand"):
        for price in (row["dph_base"], row["min_bid"]):
            assert round(price / recorded_figures.FEE, 4) == pytest.approx(price / recorded_figures.FEE, abs=1e-6)


def test_inbox_figures_are_in_the_files() -> None:
    assert_recorded(recorded_figures.OUTBID_JUMPS, jumps(), 1e-6)
    assert min(jumps()) >= recorded_figures.OUTBID_JUMP_RANGE[0] - 0.005
    assert max(jumps()) <= recorded_figures.OUTBID_JUMP_RANGE[1] + 0.05
    began = {row["associated_id"]["instance_id"]: row["created_at"] for row in reversed(notices("instance_started"))}
    lost = {row["associated_id"]["instance_id"]: row["created_at"] for row in reversed(notices("outbid"))}
    after = [lost[key] - at for key, at in began.items() if lost.get(key, 0.0) > at]
    assert len(began) >= recorded_figures.STARTS_WATCHED
    assert len(after) >= recorded_figures.STARTS_OUTBID
    shortest, longest = recorded_figures.FIRST_OUTBID_RANGE_SECONDS
    assert shortest - 1 <= min(after)
    assert max(after) <= longest + 60


def test_resume_figures_are_those_of_the_file() -> None:
    recording = stopped()
    everything = recording["summary"]["all"]
    assert everything["n_episodes"] == recorded_figures.STOPPED_EPISODES
    assert everything["km_p_resume_by_45min"] == recorded_figures.RESUMED_BY_45
    assert everything["km_p_resume_by_90min"] == recorded_figures.RESUMED_BY_90
    assert list(recorded_figures.RESUME_MINUTES) == recording["resume_minutes"]


@pytest.mark.nightly
def test_jumps_of_all_the_files(drawn: Statistics) -> None:
    sample = jumps()
    for name, statistic in (("median", statistics.median), ("mean logarithm", intervals.mean_log)):
        interval = intervals.of_statistic(sample, statistic)
        intervals.assert_within(f"jump, {name} of {len(sample)}", statistic(drawn.jumps), statistic(sample), interval)


def test_floors_of_all_the_files(drawn: Statistics) -> None:
    sample = [row["min_bid"] / row["dph_base"] for row in offers("on-demand")]
    interval = intervals.of_statistic(sample, statistics.fmean)
    simulated = statistics.fmean(drawn.floor_over_ask)
    intervals.assert_within(f"floor over ask, mean of {len(sample)}", simulated, statistics.fmean(sample), interval)


def test_reliability_of_all_the_files(drawn: Statistics) -> None:
    sample = [1 - row["reliability2"] for row in offers()]
    lost = [1 - host.reliability for host in drawn.hosts]
    interval = intervals.of_statistic(sample, statistics.median)
    intervals.assert_within("1 - reliability, median", statistics.median(lost), statistics.median(sample), interval)


@pytest.mark.nightly
def test_floors_at_or_above_the_ask_of_all_the_files(drawn: Statistics) -> None:
    sample = [row["min_bid"] / row["dph_base"] for row in offers("on-demand")]
    over = sum(ratio > 1 - 1e-9 for ratio in sample)
    simulated = statistics.fmean(ratio > 1 - 1e-9 for ratio in drawn.floor_over_ask)
    interval = intervals.of_share(over, len(sample))
    intervals.assert_within(f"floor at or above ask, of {len(sample)}", simulated, over / len(sample), interval)
    assert max(drawn.floor_over_ask) >= max(sample) * 0.8


@pytest.mark.nightly
def test_slow_hosts_of_all_the_files(drawn: Statistics) -> None:
    """A card's own speed is the one the catalogue gives it, which the files must bear out for the most of its hosts."""
    own = {gpu.name: gpu.dlperf for _, gpu in card_catalogue.MODELS}
    speeds = [
        row["dlperf"] / row["num_gpus"] / own[row["gpu_name"]]
        for row in offers()
        if row["num_gpus"] and row["gpu_name"] in own
    ]
    assert len(speeds) >= 6
    assert 0.97 < statistics.median(speeds) < 1.03
    slow = sum(speed < 0.6 for speed in speeds)
    simulated = statistics.fmean(host.dlperf_per_gpu / host.gpu.dlperf < 0.6 for host in drawn.hosts)
    interval = intervals.of_share(slow, len(speeds))
    intervals.assert_within(f"half speed, of {len(speeds)}", simulated, slow / len(speeds), interval)


@pytest.mark.parametrize("model", sorted(recorded_figures.DLPERF_OF_SINGLE_HOSTS))
def test_speeds_of_single_hosts_are_in_the_files(model: str) -> None:
    found = [row["dlperf"] / row["num_gpus"] for row in offers() if row["num_gpus"] and row["gpu_name"] == model]
    values = recorded_figures.DLPERF_OF_SINGLE_HOSTS[model]
    lacking = [value for value in values if all(abs(value - each) > 0.51 for each in found)]
    if lacking:
        pytest.skip(f"no recording in {FOLDER} holds a {model} at {lacking}: these figures were not checked")
    assert_recorded(values, found, 0.51)
