"""An array in bad weather, one after another, eight at once and all at once, beside a bound, with 95 % intervals.

`python -m tests.soak.array_table SEEDS TASKS FILE` plays the days of SEEDS (such as 1-20) that FILE does not have yet,
appends each as a line of JSON with the commit that played it, and prints the table of what FILE has. It may be stopped
at any time, and goes on from there. Two processes take seeds and a file each; their lines can be put together. A seed
counts once all its days are played: climates and widths of one seed are one block, and under five blocks no interval
is printed.

The days of 200 tasks are kept in `array_days.jsonl` beside this file, since all twenty seeds take hours.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent.cli.shared import session
from tests.soak import array_day
from tests.support import intervals

CLIMATES = ("bidding_war", "blackout")
LEAST_BLOCKS = 5
"""As in the lab: an interval of fewer blocks says nothing."""
COLUMNS = ("dollars", "hours", "bound_dollars", "bound_hours")


@dataclass(frozen=True, slots=True)
class Case:
    """One day to play."""

    climate: str
    seed: int
    tasks: int
    at_once: int

    def played(self) -> dict[str, Any]:
        """Play it, and return its figures."""
        session.log_quietly()
        with tempfile.TemporaryDirectory(prefix="gpubid-array-", dir="/dev/shm") as place:
            made = array_day.array(self.tasks, self.at_once, self.seed)
            day = asyncio.run(array_day.play(Path(place), self.climate, self.seed, made, is_checked=False))
        wrong = set(day.marked) != {1} or 0 in day.finished or day.rented_again > 0
        twice = sum(day.finished) - len(day.finished)
        found = {"is_wrong": wrong, "twice": twice, "by_hand": day.by_hand}
        return asdict(self) | {name: getattr(day, name) for name in COLUMNS} | found | {"commit": _commit()}


def _commit() -> str:
    return subprocess.run(
        ("git", "rev-parse", "--short", "HEAD"), check=True, capture_output=True, text=True
    ).stdout.strip()


def cases(seeds: Iterable[int], tasks: int) -> Iterator[Case]:
    """Yield the days of each seed, seed by seed."""
    for seed in seeds:
        for climate in CLIMATES:
            for at_once in (1, 8, tasks):
                yield Case(climate, seed, tasks, at_once)


def read(file: Path) -> dict[Case, dict[str, Any]]:
    """Return the days that were played, by case; the last line may be cut off."""
    found = {}
    for line in file.read_text().splitlines(keepends=True) if file.exists() else ():
        if line.endswith("\n"):
            row = json.loads(line)
            found[Case(row["climate"], row["seed"], row["tasks"], row["at_once"])] = row
    return found


def table(days: dict[Case, dict[str, Any]], tasks: int) -> list[str]:
    """Return the lines of the table, over the seeds all of whose days are played."""
    seeds = sorted({case.seed for case in days if case.tasks == tasks})
    blocks = [seed for seed in seeds if all(case in days for case in cases([seed], tasks))]
    told = [
        f"{tasks} tasks of {array_day.MINUTES[0]:.0f} to {array_day.MINUTES[1]:.0f} minutes, {len(blocks)} seeds",
        "| climate | at once | cost | hours | bound: cost | bound: hours | wrong | done twice | held for a person |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for climate in CLIMATES if blocks else ():
        for at_once in (1, 8, tasks):
            rows = [days[Case(climate, seed, tasks, at_once)] for seed in blocks]
            means = [mean([row[name] for row in rows], "$" if "dollars" in name else "") for name in COLUMNS]
            counts = [str(sum(row[name] for row in rows)) for name in ("is_wrong", "twice", "by_hand")]
            told.append(f"| {climate} | {at_once} | {' | '.join([*means, *counts])} |")
    return told


def mean(values: Sequence[float], unit: str) -> str:
    """Return the mean of one value a seed, with its 95 % interval over resamples of the seeds."""
    found = f"{unit}{statistics.mean(values):.2f}"
    if len(values) < LEAST_BLOCKS:
        return found
    low, high = intervals.of_statistic(values, statistics.mean)
    return f"{found} ({low:.2f} to {high:.2f})"


def main(seeds: Iterable[int], tasks: int, file: Path) -> None:
    """Play what is missing, and print the table."""
    days = read(file)
    for case in cases(seeds, tasks):
        if case not in days:
            days[case] = case.played()
            with file.open("a") as out:
                out.write(json.dumps(days[case]) + "\n")
    print("\n".join(table(days, tasks)))


if __name__ == "__main__":
    low, _, high = sys.argv[1].partition("-")
    main(range(int(low), int(high or low) + 1), int(sys.argv[2]), Path(sys.argv[3]))
