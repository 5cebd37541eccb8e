"""Runs the parts of a night. A part that passed on this very tree is not run again, so that a broken night goes on.

1. A part that fails hides no other one: all are run, and the night has failed.
2. What passed is kept by the digest of the committed tree, without the records of long runs. With changes that are not
   committed nothing is kept, nor taken from what is kept.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.night.parts import Part
from tests.support import committed
from tests.support.kept_runs import KeptRuns

RECORDED = "tests/night/passed_parts.jsonl"
RECORDS = (RECORDED, "tests/soak/soak_days.jsonl", "tests/soak/array_days.jsonl")
"""Files that tell of runs, and change none."""


def kept(root: Path, cache: Path) -> KeptRuns | None:
    """Return the parts that have passed on the committed tree, or nothing where the files differ from it."""
    tree = committed.digest(root, without=RECORDS)
    return KeptRuns(tree, cache, root / RECORDED) if tree else None


def run(parts: Iterable[Part], root: Path, cache: Path, *, is_again: bool = False) -> bool:
    """Run the parts in a checkout, print a table of their times, and return whether all have passed.

    If it `is_again`, parts that have passed are run too.
    """
    runs, rows = kept(root, cache), []
    for part in parts:
        name = part.name.replace(" ", "-")
        before = runs.get(name) if runs is not None and not is_again else None
        if before is not None:
            rows.append((part.name, "passed before", float(before["seconds"])))
            continue
        sys.stdout.write(f"--- {part.name}\n")
        sys.stdout.flush()
        began = time.monotonic()
        has_passed = _has_passed(part, root)
        rows.append((part.name, "passed" if has_passed else "FAILED", time.monotonic() - began))
        now = kept(root, cache)
        if has_passed and runs is not None and now is not None and now.program == runs.program:
            runs.keep(name, {"seconds": round(rows[-1][2])})
    sys.stdout.write("".join(f"{name:<12} {end:<14} {seconds:7.0f} s\n" for name, end, seconds in rows))
    sys.stdout.flush()
    return all(end != "FAILED" for _, end, _ in rows)


def _has_passed(part: Part, root: Path) -> bool:
    environment = {**os.environ, **part.environment}
    return all(
        subprocess.run(command, cwd=root, env=environment, check=False).returncode == 0 for command in part.commands
    )
