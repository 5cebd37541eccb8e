"""`python -m tests.disasters`: plays seeds and prints the first few that fail, shrunk. Exit code 1 if any fails."""

import argparse
import collections
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from agent.cli.lab import cluster
from agent.lab.workers.lab_workers import Workers
from tests.disasters import seed_runs, tell
from tests.disasters.life import Verdict
from tests.disasters.seed_runs import Ledgers, Playing, Shrinking
from tests.disasters.sight import Broken
from tests.support import engines

SEEDS_OF_PART = 4
"""Seeds that a worker plays before it reports. A lost worker's part is played again."""
MOST_TOLD = 5


def main(words: Sequence[str] | None = None) -> int:
    """Play the seeds. `words` are the options, by default those of the program."""
    parser = argparse.ArgumentParser(prog="python -m tests.disasters", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--folder", type=Path, help="keep ledgers here, on disk, instead of in memory")
    where.add_argument("--postgresql", action="store_true", help="keep ledgers on a PostgreSQL server of this run")
    where.add_argument("--on", metavar="ADDRESS", help="play on a Dask cluster, as `gpubid lab bench --on`")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="of this machine, without --on")
    parser.add_argument("--shrink", type=int, default=MOST_TOLD, help="how many failing seeds are shrunk and told")
    asked = parser.parse_args(words)
    serving = engines.serving() if asked.postgresql else contextlib.nullcontext("")
    try:
        with serving as server, cluster.workers(asked.on, asked.processes, seed_runs.PACKAGES) as workers:
            return _all(asked, workers, Ledgers(asked.folder, server))
    except typer.Exit as ended:
        return ended.exit_code


def _all(asked: argparse.Namespace, workers: Workers, ledgers: Ledgers) -> int:
    """Play the seeds that were asked for, and tell some of those that failed."""
    seeds = range(asked.first, asked.first + asked.seeds)
    began = time.monotonic()
    failed: list[tuple[int, Broken]] = []
    verdicts: list[Verdict] = []
    for seed, verdict in zip(seeds, _verdicts(seeds, workers, ledgers), strict=True):
        verdicts.append(verdict)
        if verdict.broken is not None:
            failed.append((seed, verdict.broken))
            _say(f"seed {seed}: {tell.verdict(verdict.broken)}")
    _say(_summary(verdicts, failed, time.monotonic() - began))
    for story, broken in workers.map(Shrinking(), ledgers, _one_of_each(failed, asked.shrink)):
        _say("", *tell.story(story), f"  => {tell.verdict(broken)}")
    return 1 if failed else 0


def _verdicts(seeds: range, workers: Workers, ledgers: Ledgers) -> Iterator[Verdict]:
    """Yield the verdict of each seed, in order."""
    parts = [seeds[at : at + SEEDS_OF_PART] for at in range(0, len(seeds), SEEDS_OF_PART)]
    for verdicts in workers.map(Playing(), ledgers, parts):
        yield from verdicts


def _one_of_each(failed: list[tuple[int, Broken]], most: int) -> list[tuple[int, Broken]]:
    """Return failing seeds, of different points first."""
    by_point: dict[int, list[tuple[int, Broken]]] = collections.defaultdict(list)
    for each in failed:
        by_point[each[1].point].append(each)
    rounds = max(map(len, by_point.values()), default=0)
    return [seeds[turn] for turn in range(rounds) for seeds in by_point.values() if turn < len(seeds)][:most]


def _summary(verdicts: list[Verdict], failed: list[tuple[int, Broken]], seconds: float) -> str:
    cycles = sum(verdict.cycles for verdict in verdicts)
    whole = [verdict.judged[5] for verdict in verdicts if verdict.broken is None]
    pace = f"{1000 * seconds / cycles:.2f} ms a cycle of wall time"
    least = f"point 6 at least {min(whole, default=0)} times a seed"
    played = f"{len(verdicts)} seeds, {cycles:,} cycles in {seconds:.0f} s ({pace})"
    return f"{played}; {tell.counts(verdicts)}; {least}; {len(failed)} failed"


def _say(*lines: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
