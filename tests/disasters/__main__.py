"""`python -m tests.disasters`: plays seeds and prints the first few that fail, shrunk. Exit code 1 if any fails."""

import argparse
import collections
import contextlib
import gc
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import structlog

from agent.decide.deadline import single_pool_policy
from tests.disasters import draw, play, shrink, tell
from tests.disasters.life import Verdict
from tests.disasters.sight import Broken
from tests.disasters.story import Story
from tests.support import engines

QUIET = 50
POINTS = 6
COLLECT_EVERY = 50_000
"""New objects between two collections: a cycle makes thousands, and nearly all of them go by themselves."""
MOST_TOLD = 5
MOST_TABLE_BYTES = 1500 << 20
"""Of a worker's tables for deadlines: all jobs here differ in prices only, and a hundred tables of 14 MB serve them."""


def quietly() -> None:
    """Let the program log nothing, because nobody reads the logs of ten thousand disasters."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(QUIET))


def ready(server: str = "") -> None:
    """Make a worker process ready; its ledgers are in files, or on a server.

    Its imported modules are never garbage, so the collector skips them.
    """
    engines.play_on(server)
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY, 20, 50)
    single_pool_policy.tables.most_bytes = MOST_TABLE_BYTES


def lived(seed: int, folder: Path | None = None) -> Verdict:
    """Play the story of a seed."""
    quietly()
    return _played(draw.story(seed), folder)


def smallest(seed: int, broken: Broken) -> tuple[Story, Broken]:
    """Return the least story of a seed that still fails at the same point, and how it fails."""
    quietly()
    found = [broken]

    def fails(story: Story) -> bool:
        again = _played(story).broken
        if again is None or again.point != broken.point:
            return False
        found.append(again)
        return True

    story = shrink.shrunk(draw.story(seed), fails)
    return story, _played(story).broken or broken


def _played(story: Story, folder: Path | None = None) -> Verdict:
    """Play a story; one that ends by a defect of the engine is a finding of its seed, and the others go on."""
    try:
        return play.play(story, folder)
    except Exception:  # noqa: BLE001 - whatever it is, it must not end a run of ten thousand
        lines = traceback.format_exc().strip().splitlines()
        return Verdict(Broken(0, 0, f"the story ended by a defect of the engine: {lines[-1]}"), (0,) * POINTS, 1, "")


def told(seed: int, broken: Broken) -> str:
    """Return a failing seed in words, shrunk."""
    story, smaller = smallest(seed, broken)
    return "\n".join([*tell.story(story), f"  => {tell.verdict(smaller)}"])


def main() -> int:
    """Play the seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.disasters", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, help="keep ledgers here, on disk, instead of in memory")
    parser.add_argument("--postgresql", action="store_true", help="keep ledgers on a PostgreSQL server of this run")
    parser.add_argument("--shrink", type=int, default=MOST_TOLD, help="how many failing seeds are shrunk and told")
    asked = parser.parse_args()
    with engines.serving() if asked.postgresql else contextlib.nullcontext("") as server:
        return _all(asked, server)


def _all(asked: argparse.Namespace, server: str) -> int:
    """Play the seeds that were asked for, with ledgers on a server if there is an address."""
    seeds = range(asked.first, asked.first + asked.seeds)
    began = time.monotonic()
    failed: list[tuple[int, Broken]] = []
    verdicts: list[Verdict] = []
    with ProcessPoolExecutor(asked.processes, initializer=ready, initargs=(server,)) as pool:
        results = pool.map(lived, seeds, [asked.folder] * len(seeds), chunksize=4)
        for seed, verdict in zip(seeds, results, strict=True):
            verdicts.append(verdict)
            if verdict.broken is not None:
                failed.append((seed, verdict.broken))
                _say(f"seed {seed}: {tell.verdict(verdict.broken)}")
        _say(_summary(verdicts, failed, time.monotonic() - began))
        for text in pool.map(told, *zip(*_one_of_each(failed, asked.shrink), strict=True)) if failed else ():
            _say("", text)
    return 1 if failed else 0


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
