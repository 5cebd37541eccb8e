"""How good estimates are: a second simulated day, estimated from the first alone, against its later cost.

`python -m tests.soak.estimates CLIMATE...`: a line a seed, and how many measured days lay where they should. The first
day is rehearsed by itself, its ledger is what the estimate is made from; then both days under the same seed, and the
second is the difference. The estimate gets the market's storage price (the recorded median), as an operator can read
it.
"""

import argparse
import asyncio
import dataclasses
import itertools
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from agent.baselines.catalogue import Catalogue
from agent.cli.rehearsing.rehearsal import START, Rehearsal, Scene, rehearse
from agent.cli.shared import session
from agent.config import job_table as jobs
from agent.decide.estimate import option
from agent.observe import estimate_inputs

CONFIG = Path(__file__).parents[2] / "agent.toml"
CLIMATES = ("calm", "recorded", "bidding_war", "price_spike")
DAY = 24.0
STORAGE_PRICE = 0.2
SEEDS = range(1, 5)


@dataclasses.dataclass(frozen=True, slots=True)
class Judged:
    """One day: its estimate, and its outcome. `measured` is dollars for `hours` useful hours."""

    climate: str
    seed: int
    hours: float
    measured: float
    least: float
    expected: float
    nine_in_ten: float
    interruptions: int
    expected_interruptions: float


def judge(climate: str, seed: int) -> Judged:
    """Rehearse a day, estimate the next, and live it."""
    session.log_quietly()
    return asyncio.run(_judge(climate, seed))


async def _judge(climate: str, seed: int) -> Judged:
    config, tuned = session.read(CONFIG)
    with tempfile.TemporaryDirectory(prefix="gpubid-estimates-") as made:
        first = await rehearse(config, tuned, Scene(climate, DAY, seed), Path(made))
        both = await rehearse(config, tuned, Scene(climate, 2 * DAY, seed))
        hours = both.figures["useful_hours"] - first.figures["useful_hours"]
        (work,) = config.workloads
        now = START + timedelta(hours=DAY)
        table = jobs.read(
            None, estimate_inputs.of_workload(work, now, {}), {"hours": hours, "storage_price": STORAGE_PRICE}
        )
        ledger = Path(made) / "rehearsal.sqlite"
        (found,) = await estimate_inputs.find(table, ["vast"], ledger, tuned, Catalogue(()), now)
    made_of = next(one for one in found.options if one.name == f"vast, {work.strategy}")
    return _judged(climate, seed, (first, both), made_of, hours)


def _judged(climate: str, seed: int, days: tuple[Rehearsal, Rehearsal], made: option.Estimate, hours: float) -> Judged:
    first, both = (day.figures for day in days)
    return Judged(
        climate=climate,
        seed=seed,
        hours=hours,
        measured=both["spend"] - first["spend"],
        least=made.dollars_least,
        expected=made.dollars or float("nan"),
        nine_in_ten=made.dollars_p90 or float("nan"),
        interruptions=sum(both["interruptions"].values()) - sum(first["interruptions"].values()),
        expected_interruptions=made.interruptions or float("nan"),
    )


def summary(days: list[Judged]) -> dict[str, Any]:
    """Return how measured dollars lie to the estimates: means as ratios, shares of days."""
    measured, expected = sum(day.measured for day in days), sum(day.expected for day in days)
    return {
        "days": len(days),
        "measured_over_expected": measured / expected,
        "under_nine_in_ten": sum(day.measured <= day.nine_in_ten for day in days) / len(days),
        "interruptions": sum(day.interruptions for day in days) / len(days),
        "expected_interruptions": sum(day.expected_interruptions for day in days) / len(days),
    }


def every(climates: Iterable[str], seeds: Iterable[int]) -> Iterator[Judged]:
    """Yield every day judged, on all processors."""
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        waiting = [pool.submit(judge, climate, seed) for climate, seed in itertools.product(climates, seeds)]
        for one in waiting:
            yield one.result()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("climates", nargs="*", default=list(CLIMATES))
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    asked = parser.parse_args()
    days: list[Judged] = []
    for day in every(asked.climates, asked.seeds):
        days.append(day)
        print(
            f"{day.climate:12} {day.seed:3} {day.hours:6.2f} h  measured {day.measured:7.4f}  least {day.least:7.4f}  "
            f"expected {day.expected:7.4f}  9 in 10 {day.nine_in_ten:7.4f}  interrupted {day.interruptions} "
            f"of {day.expected_interruptions:.1f}",
            flush=True,
        )
    for climate in asked.climates:
        mine = [day for day in days if day.climate == climate]
        print(climate, {key: round(value, 3) for key, value in summary(mine).items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
