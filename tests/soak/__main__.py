"""`python -m tests.soak`: two days on all simulated markets, every climate, ten seeds; 1 if anything is wrong.

All climates of a seed are played before the next seed. Rehearsals are kept by what was committed of the program and of
this folder, so a soak that was broken off goes on. `--record` plays nothing: it writes the kept rehearsals into
`soak_days.jsonl` beside this file. With that committed, another machine goes on from there.
"""

import argparse
import asyncio
import dataclasses
import functools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from agent import strategy_files
from agent.cli.rehearsing.rehearsal import START, Scene, rehearse
from agent.cli.shared import session
from agent.config.settings import Config, MarketSettings
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.work.deadline import Deadline
from agent.domain.work.workload import Fallback, WorkloadKind
from agent.markets.dstack.vendor_record import DstackOptions
from agent.markets.mithril.vendor_record import MithrilOptions
from tests.support import committed, kept_runs, verdict
from tests.support.kept_runs import KeptRuns

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "agent.toml"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpubid" / "soak"
RECORDED = Path(__file__).with_name("soak_days.jsonl")
PLAYED = (
    *("agent", "strategies", "agent.toml", "requirements.lock"),
    *("tests/soak/__main__.py", "tests/support/verdict.py"),
)
"""All that a rehearsal depends on."""
MOST_MOVES = 6.0
"""A slot and day outside a bidding war: more is ping-pong."""
CLIMATES = ("calm", "bidding_war", "price_spike", "blackout", "lying_list", "host_death", "broke")
WORK_HOURS = 20.0
DUE_AFTER = timedelta(hours=30)
"""The work of `deadline` reports no progress: it spends ten hours of slack and is on demand from then on."""
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


Played = tuple[str, float, int, str]
"""Climate, hours, seed and strategy of a rehearsal."""


@dataclasses.dataclass(frozen=True, slots=True)
class Lived:
    """One rehearsal: its figures, and its violations."""

    figures: dict[str, Any]
    wrong: list[str]


AUCTIONS, CLOUDS = "mithril", "dstack"
ALL = ("vast", "runpod", AUCTIONS, CLOUDS)
MARKETS: dict[str, tuple[str, ...]] = {
    "train": ("vast", "runpod"),
    "serve": ("vast",),
    "tune": ("runpod",),
    "probe": ("vast", "runpod"),
    "study": (AUCTIONS,),
    "cloud": (CLOUDS,),
    "spill": ("vast", CLOUDS),
}
"""One on each market alone; the others run where it is better of those that sell their cards. `spill` uses the second
one only while it finds nothing on the first.
"""
CARDS = {
    "train": ("RTX 4090",),
    "study": ("A100 SXM4",),
    "serve": ("RTX 3090",),
    "tune": ("RTX 4090", "RTX 3090"),
    "probe": ("RTX 3090",),
    "cloud": ("L4", "L40S"),
    "spill": ("RTX 4090",),
}
MIXED = {
    "train": "deadline",
    "serve": "hedged",
    "tune": "patient",
    "probe": "ondemand",
    "study": "patient",
    "cloud": "ondemand",
    "spill": "patient",
}
"""All four strategies live side by side in one fleet, and compete for the same hosts and the same budget."""
ONE = ("train", "serve", "tune", "study", "cloud", "spill")
VALUE = money.per_hour("1.20")
"""What an hour of an A100 is worth at most; the recorded price of one is $1.00."""
STRATEGIES = ("mixed", *sorted(strategy_files.BUILT_IN))


def staffed(config: Config, strategy: str = "patient", markets: tuple[str, ...] = ALL) -> Config:
    """Return the shipped configuration on some markets, with workloads of both kinds and limits that leave room.

    They are seven of all strategies where it is mixed, else six of one, and fewer without auctions or clouds.
    """
    (train,) = config.workloads
    names = MIXED if strategy == "mixed" else dict.fromkeys(ONE, strategy)
    workloads = tuple(
        dataclasses.replace(
            train,
            name=name,
            strategy=chosen,
            kind=WorkloadKind.SERVICE if name == "serve" else WorkloadKind.BATCH,
            markets=MARKETS[name] if name != "spill" else MARKETS[name][:1],
            fallback=Fallback(MARKETS[name][1:]) if name == "spill" else Fallback(),
            requirements=dataclasses.replace(train.requirements, gpu_models=tuple(map(gpu.model, CARDS[name]))),
            max_price=VALUE if name in {"study", "cloud", "spill"} else train.max_price,
            deadline=Deadline(WORK_HOURS, START + DUE_AFTER) if chosen == "deadline" else None,
        )
        for name, chosen in names.items()
        if set(MARKETS[name]) <= set(markets)
    )
    caps = dataclasses.replace(
        config.limits, per_hour=money.per_hour(3), per_day=money.usd(36), per_month=money.usd(750), instances=9
    )
    if {AUCTIONS, CLOUDS} & set(markets):
        caps = dataclasses.replace(caps, per_instance_hour=VALUE, per_hour=money.per_hour(7), per_day=money.usd(84))
        caps = dataclasses.replace(caps, instances=13)
    return dataclasses.replace(config, markets=tuple(map(_simulated, markets)), workloads=workloads, limits=caps)


def _simulated(name: str) -> MarketSettings:
    # The simulated auctions bill nothing for a kept boot disk.
    options = {
        AUCTIONS: MithrilOptions(disk_per_gb_month=Decimal(0)),
        CLOUDS: DstackOptions(fleet="gpubid", backends=("aws", "lambda", "cloudrift", "vultr")),
    }
    return MarketSettings(name, "", "calm", "", None, spend=False, options=options.get(name))


def live(
    climate: str,
    hours: float,
    seed: int,
    strategy: str = "patient",
    markets: tuple[str, ...] = ALL,
    *,
    poll: timedelta | None = None,
) -> Lived:
    """Rehearse once: the shipped configuration with workloads of both kinds under one strategy, or all of them.

    Without `poll` it polls as shipped.
    """
    session.log_quietly()
    config, tuned = session.read(CONFIG)
    config = dataclasses.replace(staffed(config, strategy, markets), poll=poll or config.poll)
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
    parser.add_argument("--strategy", action="append", choices=STRATEGIES)
    parser.add_argument("--record", action="store_true", help="write what is kept into the checkout, and play nothing")
    asked = parser.parse_args()
    if asked.record:
        return kept_runs.record(kept(), "rehearsals")
    scenes = [
        (climate, asked.hours, seed, strategy)
        for strategy in asked.strategy or ("mixed",)
        for seed in range(asked.first_seed, asked.first_seed + asked.seeds)
        for climate in asked.climate or CLIMATES
    ]
    heads = ("climate     ", "seed", *(name.rjust(max(len(name), 8)) for name in COLUMNS))
    sys.stdout.write("  ".join(heads) + "\n")
    failed = 0
    for lived in played(scenes, asked.processes, kept()):
        failed += bool(lived.wrong)
        sys.stdout.write(row(lived) + "\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(scenes)} rehearsals of {asked.hours:g} simulated hours, {failed} with something wrong\n")
    return 1 if failed else 0


def kept() -> KeptRuns | None:
    """Return the kept rehearsals of what is committed, or nothing where the files differ from it."""
    program = committed.digest(ROOT, *PLAYED)
    return KeptRuns(program, CACHE, RECORDED) if program else None


def played(scenes: Sequence[Played], processes: int, runs: KeptRuns | None) -> Iterator[Lived]:
    """Return every rehearsal in turn; those that are kept are read, the others are played and kept."""
    with ProcessPoolExecutor(processes, initializer=functools.partial(os.nice, 5)) as pool:
        yield from pool.map(functools.partial(_played, runs), scenes)


def _played(runs: KeptRuns | None, scene: Played) -> Lived:
    name = "-".join(map(str, scene))
    run = runs.get(name) if runs is not None else None
    if run is not None:
        return Lived(**run)
    lived = live(*scene)
    now = kept()
    # What went wrong is played again, since somebody will look at it.
    if runs is not None and not lived.wrong and now is not None and now.program == runs.program:
        runs.keep(name, dataclasses.asdict(lived))
    return lived


if __name__ == "__main__":
    sys.exit(main())
