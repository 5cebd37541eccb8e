"""95 % intervals of recorded statistics: exact for counts, resampled for small samples, Greenwood for survival."""

import math
import random
import statistics
from collections.abc import Callable, Sequence

Interval = tuple[float, float]


def assert_within(name: str, simulated: float, recorded: float, interval: Interval) -> None:
    """Print both values, and fail unless the simulated one is in the recorded one's interval."""
    low, high = interval
    print(f"{name}: simulated {simulated:.4g}, recorded {recorded:.4g}, 95 % interval {low:.4g} to {high:.4g}")
    assert low <= simulated <= high, f"{name}: {simulated:.4g} is outside {low:.4g} to {high:.4g}"


def of_share(hits: int, of: int, level: float = 0.95) -> Interval:
    """Return the exact (Clopper-Pearson) interval of a share."""
    tail = (1.0 - level) / 2
    low = 0.0 if hits == 0 else _solve(lambda p: 1.0 - _binomial_cdf(hits - 1, of, p) - tail)
    high = 1.0 if hits == of else _solve(lambda p: tail - _binomial_cdf(hits, of, p))
    return low, high


def of_statistic(
    sample: Sequence[float], statistic: Callable[[Sequence[float]], float], level: float = 0.95
) -> Interval:
    """Return the percentile interval of a statistic over 4,000 resamples, which are always the same."""
    rng = random.Random(20_261_121)
    drawn = sorted(statistic(rng.choices(sample, k=len(sample))) for _ in range(4_000))
    tail = (1.0 - level) / 2
    return drawn[int(tail * len(drawn))], drawn[int((1.0 - tail) * len(drawn)) - 1]


def of_kaplan_meier(chance: float, steps: Sequence[tuple[int, float]]) -> Interval:
    """Return Greenwood's interval, on the log-log scale, of a Kaplan-Meier chance of which only a summary is known.

    `steps` are stretches of time: the events in each, and the survival at its end. The number at risk was not kept. So
    each stretch gets one number at risk for all its events, chosen so that the survival results.
    """
    variance, before = 0.0, 1.0
    for events, survival in steps:
        at_risk = 1.0 / (1.0 - (survival / before) ** (1.0 / events))
        variance += events / (at_risk * (at_risk - 1.0))
        before = survival
    survival = 1.0 - chance
    spread = 1.96 * math.sqrt(variance) / abs(math.log(survival))
    low, high = survival ** math.exp(spread), survival ** math.exp(-spread)
    return 1.0 - high, 1.0 - low


def kaplan_meier(episodes: Sequence[tuple[float, bool]], by: float) -> float:
    """Return the chance of the event by a time, from pairs of duration and whether it ended in the event."""
    survival, at_risk = 1.0, len(episodes)
    for duration, is_event in sorted(episodes):
        if duration > by:
            break
        if is_event:
            survival *= 1.0 - 1.0 / at_risk
        at_risk -= 1
    return 1.0 - survival


def mean_log(sample: Sequence[float]) -> float:
    """Return the mean of the logarithms."""
    return statistics.fmean(math.log(value) for value in sample)


def _binomial_cdf(hits: int, of: int, p: float) -> float:
    return math.fsum(math.comb(of, k) * p**k * (1.0 - p) ** (of - k) for k in range(hits + 1))


def _solve(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
