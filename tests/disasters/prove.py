"""`python -m tests.disasters.prove`: takes each fix out again and says after how many seeds the defect was found.

A seed counts as finding it only where the same story holds with the fix. Without an answer within the seeds: 1.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.disasters import draw, play, regressions, seed_runs, tell
from tests.disasters.sight import Broken

AT_ONCE = 8


def found(name: str, seed: int) -> Broken | None:
    """Return the violations that a seed shows without the fix and not with it."""
    seed_runs.quietly()
    with seed_runs.ready():
        with regressions.taken_out(name):
            broken = play.play(draw.story(seed)).broken
        if broken is None or play.play(draw.story(seed)).broken is not None:
            return None
        return broken


def main() -> int:
    """Prove every regression, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.disasters.prove", description=__doc__)
    parser.add_argument("names", nargs="*", default=sorted(regressions.REGRESSIONS))
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1)
    asked = parser.parse_args()
    unfound = 0
    with ProcessPoolExecutor(os.cpu_count() or 1) as pool:
        for name in asked.names:
            unfound += not _proven(pool, name, asked.first, asked.seeds)
    return 1 if unfound else 0


def _proven(pool: ProcessPoolExecutor, name: str, first: int, most: int) -> bool:
    seeds = range(first, first + most)
    for batch in _batches(seeds):
        for seed, broken in zip(batch, pool.map(found, [name] * len(batch), batch), strict=True):
            if broken is not None:
                sys.stdout.write(f"{name} is found after {seed - first + 1} seeds: {tell.verdict(broken)}\n")
                sys.stdout.flush()
                return True
    sys.stdout.write(f"{name} is NOT found within {most} seeds\n")
    return False


def _batches(seeds: range) -> list[range]:
    return [seeds[at : at + AT_ONCE] for at in range(0, len(seeds), AT_ONCE)]


if __name__ == "__main__":
    sys.exit(main())
