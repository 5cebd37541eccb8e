"""`python -m tests.soak`: two simulated days in every climate under ten seeds; ends with 1 if anything is wrong."""

import argparse
import asyncio
import dataclasses
import functools
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from agent.cli import session
from agent.cli.rehearsal import Scene, rehearse
from tests.support import verdict

CONFIG = Path(__file__).parents[2] / "agent.toml"
CLIMATES = ("calm", "bidding_war", "price_spike", "blackout", "lying_list", "host_death", "broke")
COLUMNS = ("useful_hours", "interrupted", "moved", "spend", "charged", "savings_ratio", *verdict.ZEROS, "wall_seconds")


@dataclasses.dataclass(frozen=True, slots=True)
class Lived:
    """One rehearsal: its figures, and what did not hold."""

    figures: dict[str, Any]
    wrong: list[str]


def live(climate: str, hours: float, seed: int) -> Lived:
    """Rehearse the shipped configuration once."""
    session.log_quietly()
    config, tuned = session.read(CONFIG)
    told = asyncio.run(rehearse(config, tuned, Scene(climate, hours, seed)))
    return Lived(dict(told.figures), verdict.wrong(told))


def row(lived: Lived) -> str:
    """Return one line of the table."""
    figures = {**lived.figures, "interrupted": sum(lived.figures["interruptions"].values())}
    cells = [f"{figures['climate']:<12}", f"{figures['seed']:>4}", *(_cell(figures[name], name) for name in COLUMNS)]
    return "  ".join([*cells, *lived.wrong])


def _cell(value: object, name: str) -> str:
    text = "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
    return text.rjust(max(len(name), 8))


def main() -> int:
    """Run the soak and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=48.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--climate", action="append", choices=CLIMATES)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.seeds)
    scenes = [(climate, asked.hours, seed) for climate in asked.climate or CLIMATES for seed in seeds]
    heads = ("climate     ", "seed", *(name.rjust(max(len(name), 8)) for name in COLUMNS))
    sys.stdout.write("  ".join(heads) + "\n")
    failed = 0
    with ProcessPoolExecutor(asked.processes, initializer=functools.partial(os.nice, 5)) as pool:
        for lived in pool.map(live, *zip(*scenes, strict=True)):
            failed += bool(lived.wrong)
            sys.stdout.write(row(lived) + "\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(scenes)} rehearsals of {asked.hours:g} simulated hours, {failed} with something wrong\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
