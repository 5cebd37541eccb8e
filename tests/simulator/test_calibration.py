"""The simulator's own statistics lie within the 95 % intervals of the recorded ones.

Run with `-s` to see both side by side. The climate is `recorded`. agent/simulator/recorded_figures.py has the figures,
their sources and the number of values behind each. Where GPUBID_RECORDED names the folder of the recordings, the
figures are checked against the files, and the statistics against everything those files hold.
"""

import math
import statistics

import pytest

from agent.simulator import recorded_figures
from tests.support import intervals, market_statistics
from tests.support.market_statistics import Statistics


@pytest.fixture(scope="module")
def drawn() -> Statistics:
    return market_statistics.draw()


def share_below(sample: list[float], bound: float) -> float:
    return statistics.fmean(value < bound for value in sample)


def test_floor_over_ask(drawn: Statistics) -> None:
    ratios = drawn.floor_over_ask
    print(f"floor over ask, deciles: {[round(value, 2) for value in statistics.quantiles(ratios, n=10)]}")
    count = recorded_figures.FLOOR_OVER_ASK_ROWS
    lowest, highest = recorded_figures.FLOOR_OVER_ASK_RANGE
    median = recorded_figures.FLOOR_OVER_ASK_MEDIAN
    half = count // 2
    intervals.assert_within(
        "share below the recorded median", share_below(ratios, median), 0.5, intervals.of_share(half, count)
    )
    intervals.assert_within(
        "share below the recorded minimum", share_below(ratios, lowest), 0.0, intervals.of_share(0, count)
    )
    intervals.assert_within(
        "share above the recorded maximum", 1 - share_below(ratios, highest), 0.0, intervals.of_share(0, count)
    )
    sample = recorded_figures.FLOOR_OVER_ASK
    over, rows = recorded_figures.FLOOR_AT_OR_ABOVE_ASK
    intervals.assert_within(
        "share at or above the ask", 1 - share_below(ratios, 1 - 1e-9), over / rows, intervals.of_share(over, rows)
    )
    assert 0.8 * recorded_figures.FLOOR_OVER_ASK_MOST < max(ratios) < 1.25 * recorded_figures.FLOOR_OVER_ASK_MOST
    mean = statistics.fmean(sample)
    intervals.assert_within("mean", statistics.fmean(ratios), mean, intervals.of_statistic(sample, statistics.fmean))


def test_outbid_jump(drawn: Statistics) -> None:
    jumps = drawn.jumps
    print(f"jump, {len(jumps)} of them, deciles: {[round(value, 2) for value in statistics.quantiles(jumps, n=10)]}")
    count, median = recorded_figures.OUTBID_COUNT, recorded_figures.OUTBID_JUMP_MEDIAN
    lowest, highest = recorded_figures.OUTBID_JUMP_RANGE
    intervals.assert_within(
        "share below the recorded median", share_below(jumps, median), 0.5, intervals.of_share(count // 2, count)
    )
    intervals.assert_within(
        "share below the recorded minimum", share_below(jumps, lowest), 0.0, intervals.of_share(0, count)
    )
    intervals.assert_within(
        "share above the recorded maximum", 1 - share_below(jumps, highest), 0.0, intervals.of_share(0, count)
    )
    sample = recorded_figures.OUTBID_JUMPS
    interval = intervals.of_statistic(sample, intervals.mean_log)
    intervals.assert_within("mean logarithm", intervals.mean_log(jumps), intervals.mean_log(sample), interval)


def test_start_to_first_outbid(drawn: Statistics) -> None:
    shortest, longest = recorded_figures.FIRST_OUTBID_RANGE_SECONDS
    within = [seconds for seconds in drawn.first_outbids if seconds <= longest]
    count, median = recorded_figures.FIRST_OUTBID_COUNT, recorded_figures.FIRST_OUTBID_MEDIAN_SECONDS
    print(f"first outbids within {longest:g} s: {len(within)}, median {statistics.median(within):.0f} s")
    intervals.assert_within(
        "share within the recorded median", share_below(within, median), 0.5, intervals.of_share(count // 2, count)
    )
    intervals.assert_within(
        "share before the recorded earliest", share_below(within, shortest), 0.0, intervals.of_share(0, count)
    )
    hits, starts = recorded_figures.STARTS_OUTBID, recorded_figures.STARTS_WATCHED
    intervals.assert_within(
        "outbid while watched", drawn.outbid_while_watched, hits / starts, intervals.of_share(hits, starts)
    )


def test_resumes(drawn: Statistics) -> None:
    by_45 = sum(minutes <= 45 for minutes in recorded_figures.RESUME_MINUTES)
    by_90 = sum(minutes <= 90 for minutes in recorded_figures.RESUME_MINUTES)
    first = (by_45, 1 - recorded_figures.RESUMED_BY_45)
    second = (by_90 - by_45, 1 - recorded_figures.RESUMED_BY_90)
    print(f"stopped episodes: {len(drawn.stopped)} simulated, {recorded_figures.STOPPED_EPISODES} recorded")
    for minutes, chance, steps in (
        (45, recorded_figures.RESUMED_BY_45, [first]),
        (90, recorded_figures.RESUMED_BY_90, [first, second]),
    ):
        simulated = intervals.kaplan_meier(drawn.stopped, minutes * 60.0)
        intervals.assert_within(
            f"resumed by {minutes} min", simulated, chance, intervals.of_kaplan_meier(chance, steps)
        )


def test_resume_minutes_of_those_that_resumed(drawn: Statistics) -> None:
    sample = recorded_figures.RESUME_MINUTES
    # the recorder watched for 93 minutes at most before it gave a box up
    resumed = [seconds / 60 for seconds, has_resumed in drawn.stopped if has_resumed and seconds <= max(sample) * 60]
    interval = intervals.of_statistic(sample, statistics.median)
    intervals.assert_within("median minutes", statistics.median(resumed), statistics.median(sample), interval)


@pytest.mark.nightly
def test_reliability(drawn: Statistics) -> None:
    lost = [1 - host.reliability for host in drawn.hosts]
    sample = [1 - value for value in recorded_figures.RELIABILITY]
    for name, statistic in (("median", statistics.median), ("mean", statistics.fmean), ("log", intervals.mean_log)):
        interval = intervals.of_statistic(sample, statistic)
        intervals.assert_within(f"1 - reliability, {name}", statistic(lost), statistic(sample), interval)


@pytest.mark.parametrize("model", sorted(recorded_figures.DLPERF))
def test_dlperf_and_asks_of_a_model(drawn: Statistics, model: str) -> None:
    hosts = [host for host in drawn.hosts if host.gpu.name == model]
    assert len(hosts) > 40, f"the market has too few {model} to say anything"
    for name, recorded, simulated in (
        ("DLPerf", recorded_figures.DLPERF[model], [host.dlperf_per_gpu for host in hosts]),
        ("ask", recorded_figures.ASKS.get(model, ()), [host.ask_per_gpu for host in hosts]),
    ):
        cuts = statistics.quantiles(simulated, n=40)
        low, high = cuts[0], cuts[-1]
        print(f"{model} {name}: simulated 95 % range {low:.4g} to {high:.4g}, recorded {recorded}")
        outside = [value for value in recorded if not low <= value <= high]
        assert len(outside) <= len(recorded) // 6, f"{model} {name}: {outside} outside {low:.4g} to {high:.4g}"


def test_dlperf_of_the_best_known_model(drawn: Statistics) -> None:
    sample = recorded_figures.DLPERF["RTX 3090"] + recorded_figures.DLPERF_OF_SINGLE_HOSTS["RTX 3090"]
    simulated = [host.dlperf_per_gpu for host in drawn.hosts if host.gpu.name == "RTX 3090"]
    for name, statistic in (("mean", statistics.fmean), ("median", statistics.median)):
        interval = intervals.of_statistic(sample, statistic)
        intervals.assert_within(f"RTX 3090 DLPerf, {name}", statistic(simulated), statistic(sample), interval)


def test_hosts_at_half_speed(drawn: Statistics) -> None:
    speeds = [host.dlperf_per_gpu / host.gpu.dlperf for host in drawn.hosts]
    slow, rows = recorded_figures.SLOW_ROWS
    print(f"speed, deciles: {[round(value, 2) for value in statistics.quantiles(speeds, n=10)]}")
    intervals.assert_within(
        "share at half speed", share_below(speeds, 0.6), slow / rows, intervals.of_share(slow, rows)
    )
    assert max(speeds) < 1.06
    for model, recorded in recorded_figures.DLPERF_OF_SINGLE_HOSTS.items():
        found = [host.dlperf_per_gpu for host in drawn.hosts if host.gpu.name == model]
        for value in recorded:
            near = [each for each in found if abs(each / value - 1) < 0.1]
            assert near, f"no {model} runs at about {value}"


def test_recorded_speeds_are_those_that_are_called_slow() -> None:
    """The count behind SLOW_ROWS, from the values themselves."""
    everything = [
        (model, value)
        for part in (recorded_figures.DLPERF, recorded_figures.DLPERF_OF_SINGLE_HOSTS)
        for model in part
        for value in part[model]
    ]
    best = {model: max(value for name, value in everything if name == model) for model, _ in everything}
    assert sum(value < 0.6 * best[model] for model, value in everything) == recorded_figures.SLOW_ROWS[0]
    assert len(everything) == recorded_figures.SLOW_ROWS[1]


def test_storage_prices_and_lines(drawn: Statistics) -> None:
    for name, sample, simulated in (
        ("storage price", recorded_figures.STORAGE_PRICES, [host.storage_price for host in drawn.hosts]),
        ("Mb/s down", recorded_figures.INET_DOWN, [host.inet_down for host in drawn.hosts]),
    ):
        interval = intervals.of_statistic(sample, statistics.median)
        intervals.assert_within(f"{name}, median", statistics.median(simulated), statistics.median(sample), interval)
        interval = intervals.of_statistic(sample, intervals.mean_log)
        intervals.assert_within(
            f"{name}, mean logarithm", intervals.mean_log(simulated), intervals.mean_log(sample), interval
        )


def test_offers_of_one_gpu_that_are_whole_hosts(drawn: Statistics) -> None:
    single = [slice_ for slice_ in drawn.slices if slice_.num_gpus == 1]
    simulated = statistics.fmean(slice_.host.gpu_count == 1 for slice_ in single)
    hits, count = (
        sum(share == 1.0 for share in recorded_figures.SINGLE_GPU_SHARES),
        len(recorded_figures.SINGLE_GPU_SHARES),
    )
    intervals.assert_within(
        "one-GPU offers that are whole hosts", simulated, hits / count, intervals.of_share(hits, count)
    )


def test_the_intervals_are_those_of_the_books() -> None:
    assert intervals.of_share(5, 10) == pytest.approx((0.1871, 0.8129), abs=1e-4)
    assert intervals.of_share(0, 16) == pytest.approx((0.0, 0.2059), abs=1e-4)
    episodes = [(1.0, True), (2.0, False), (3.0, True), (4.0, True), (5.0, False)]
    assert intervals.kaplan_meier(episodes, 3.5) == pytest.approx(1 - 0.8 * 2 / 3)
    # without censoring Greenwood's variance is the binomial one: 8 of 20 died
    low, high = intervals.of_kaplan_meier(0.4, [(8, 0.6)])
    assert low < 0.4 < high
    assert math.isclose(high - low, 2 * 1.96 * math.sqrt(0.24 / 20), rel_tol=0.25)


def test_about_names_every_figure_and_marks_what_is_assumed() -> None:
    text = recorded_figures.about()
    recorded, assumed = text.split("\nAssumed (")
    for figure in recorded_figures.figures():
        part = assumed if figure.source is None else recorded
        assert f"  {figure.name} = " in part
        assert figure.meaning in part
        assert figure.source is None or figure.source in recorded
