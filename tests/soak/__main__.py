"""`python -m tests.soak`: two simulated days in every climate under ten seeds; ends with 1 if anything is wrong."""

import argparse
import asyncio
import dataclasses
import functools
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from agent.cli import session
from agent.cli.rehearsal import Scene, rehearse
from agent.config.settings import Config
from agent.domain import gpu, money
from agent.domain.workload import WorkloadKind
from tests.support import verdict

CONFIG = Path(__file__).parents[2] / "agent.toml"
MOST_MOVES = 6.0
"""A slot and day outside a bidding war: more is ping-pong."""
CLIMATES = ("calm", "bidding_war", "price_spike", "blackout", "lying_list", "host_death", "broke")
COLUMNS = (
    "useful_hours",
    "interrupted",
    "moves_per_slot_day",
    "spend",
    "charged",
    "savings_ratio",
    *verdict.ZEROS,
    "wall_seconds",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Lived:
    """One rehearsal: its figures, and what did not hold."""

    figures: dict[str, Any]
    wrong: list[str]


def staffed(config: Config) -> Config:
    """Return the shipped configuration with three workloads of both kinds, and limits that leave room for them."""
    (train,) = config.workloads
    cards = {"train": ("RTX 4090",), "serve": ("RTX 3090",), "tune": ("RTX 4090", "RTX 3090")}
    workloads = tuple(
        dataclasses.replace(
            train,
            name=name,
            kind=WorkloadKind.SERVICE if name == "serve" else WorkloadKind.BATCH,
            requirements=dataclasses.replace(train.requirements, gpu_models=tuple(map(gpu.model, models))),
        )
        for name, models in cards.items()
    )
    caps = dataclasses.replace(
        config.limits, per_hour=money.per_hour(3), per_day=money.usd(36), per_month=money.usd(750), instances=9
    )
    return dataclasses.replace(config, workloads=workloads, limits=caps)


def live(climate: str, hours: float, seed: int) -> Lived:
    """Rehearse once: the shipped configuration with three workloads of both kinds."""
    session.log_quietly()
    config, tuned = session.read(CONFIG)
    config = staffed(config)
    told = asyncio.run(rehearse(config, tuned, Scene(climate, hours, seed)))
    figures = dict(told.figures)
    return Lived(figures, [*verdict.wrong(told), *_ping_pong(climate, figures)])


def _ping_pong(climate: str, figures: Mapping[str, Any]) -> Iterator[str]:
    moves = figures["moves_per_slot_day"]
    if climate != "bidding_war" and moves > MOST_MOVES:
        yield f"{moves:.1f} moves per slot-day, more than {MOST_MOVES}"


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
