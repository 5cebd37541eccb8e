"""`python -m tests.night`: run every part of a night, and print the time of each; 1 if any failed.

A broken night goes on: parts that passed on the committed tree are not run again. `--record` runs nothing: it writes
the parts that have passed into `passed_parts.jsonl` beside this file. With that committed, another machine goes on.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from tests.night import night
from tests.night.parts import SEEDS, parts
from tests.support import kept_runs

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpubid" / "nights"
FIRST = int(time.time()) // 86_400 * SEEDS
"""No night before has played the disasters from this seed on."""


def main() -> int:
    """Run the night, or the named parts of it."""
    known = [part.name for part in parts(0, 0)]
    parser = argparse.ArgumentParser(prog="python -m tests.night", description=__doc__)
    parser.add_argument("--part", action="append", choices=known, help="run this part alone; may be given again")
    parser.add_argument("--mutant-seconds", type=int, default=1200)
    parser.add_argument("--again", action="store_true", help="run also what has passed on this tree")
    parser.add_argument("--record", action="store_true", help="write what passed into the checkout, and run nothing")
    asked = parser.parse_args()
    if asked.record:
        return kept_runs.record(night.kept(ROOT, CACHE), "parts")
    wanted = [part for part in parts(FIRST, asked.mutant_seconds) if part.name in (asked.part or known)]
    sys.stdout.write(f"tonight's first disaster is {FIRST}\n")
    if "GPUBID_OPENAPI" not in os.environ:
        sys.stdout.write("GPUBID_OPENAPI names no OpenAPI file of the vendor: the surface is NOT fuzzed\n")
    return 0 if night.run(wanted, ROOT, CACHE, is_again=asked.again) else 1


if __name__ == "__main__":
    sys.exit(main())
