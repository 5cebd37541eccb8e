"""`python -m tests.soak.compare`: dollars per useful hour of `patient` against `floor`, by the daemon, seed by seed.

`floor` is the lab's baseline that bids exactly the floor, in our own order of offers, and goes elsewhere when lost.
Every seed is one simulated day of the shipped configuration; both strategies live through the same day, so the
difference is taken seed by seed, and its 95 % interval is the percentile interval of its mean over 4,000 resamples of
the seeds.
"""

import argparse
import asyncio
import dataclasses
import functools
import math
import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from agent.cli.rehearsing.rehearsal import Scene, rehearse
from agent.cli.shared import session
from agent.lab.bids import bid_baselines
from tests.support import intervals

CONFIG = Path(__file__).parents[2] / "agent.toml"
CLIMATES = ("bidding_war", "price_spike", "calm")
SEEDS = 20
HOURS = 24.0


@dataclasses.dataclass(frozen=True, slots=True)
class Day:
    """One rehearsed day to be run: its climate, seed and length, the strategy, and numbers it is run with instead."""

    climate: str
    seed: int
    strategy: str
    hours: float = HOURS
    numbers: tuple[tuple[str, Any], ...] = ()


def live(day: Day) -> dict[str, Any]:
    """Rehearse one day and return its figures."""
    session.log_quietly()
    config, shipped = session.read(CONFIG)
    tuned = {**shipped, "floor": bid_baselines.tuned()["floor_reckoned"]}
    if day.numbers:
        chosen = tuned[day.strategy]
        params = chosen.params.model_validate({**chosen.params.model_dump(), **dict(day.numbers)})
        tuned[day.strategy] = dataclasses.replace(chosen, params=params)
    scene = Scene(day.climate, day.hours, day.seed, day.strategy)
    return dict(asyncio.run(rehearse(config, tuned, scene)).figures)


def per_useful_hour(figures: dict[str, Any]) -> float:
    """Return dollars charged per useful hour."""
    return float(figures["charged"]) / figures["useful_hours"] if figures["useful_hours"] else math.inf


def run(days: Sequence[Day], processes: int) -> list[dict[str, Any]]:
    """Rehearse all days, in order of the answer."""
    with ProcessPoolExecutor(processes, initializer=functools.partial(os.nice, 5)) as pool:
        return list(pool.map(live, days))


def paired(mine: Sequence[float], theirs: Sequence[float]) -> tuple[float, intervals.Interval]:
    """Return the mean difference and its 95 % interval."""
    differences = [one - other for one, other in zip(mine, theirs, strict=True)]
    return statistics.fmean(differences), intervals.of_statistic(differences, statistics.fmean)


def table(climate: str, mine: Sequence[dict[str, Any]], theirs: Sequence[dict[str, Any]]) -> str:
    """Return the rows of one climate: both strategies, and the difference with its interval."""
    rows = [_row(climate, name, days) for name, days in (("patient", mine), ("floor", theirs))]
    mean, (low, high) = paired([per_useful_hour(day) for day in mine], [per_useful_hour(day) for day in theirs])
    difference = f"{climate:<12} patient - floor: {mean:+.4f} $/useful hour, 95 % [{low:+.4f}, {high:+.4f}]"
    return "\n".join([*rows, difference])


def _row(climate: str, name: str, days: Sequence[dict[str, Any]]) -> str:
    costs = [per_useful_hour(day) for day in days]
    useful = statistics.fmean(day["useful_hours"] for day in days)
    on_demand = statistics.fmean(day["on_demand_hours"] for day in days)
    losses = statistics.fmean(sum(day["interruptions"].values()) for day in days)
    moved = statistics.fmean(day.get("moves_per_slot_day", day["moved"]) for day in days)
    return (
        f"{climate:<12} {name:<8} {statistics.fmean(costs):.4f} $/useful hour, {useful:.2f} useful hours, "
        f"{losses:.1f} interruptions, {moved:.1f} moves per slot-day, {on_demand:.1f} h on demand"
    )


def main() -> None:
    """Run the comparison and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=HOURS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--climate", action="append", choices=CLIMATES)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    for climate in asked.climate or CLIMATES:
        days = [Day(climate, seed, name, asked.hours) for name in ("patient", "floor") for seed in seeds]
        found = run(days, asked.processes)
        print(table(climate, found[: len(seeds)], found[len(seeds) :]), flush=True)


if __name__ == "__main__":
    main()
