"""Runs the parts of a night. A part that passed on this very tree is not run again, so that a broken night goes on.

1. A part that fails hides no other one: all are run, and the night has failed.
2. What passed is remembered by the digest of the committed tree. With changes that are not committed nothing is
   remembered, nor taken from memory.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.night.parts import Part
from tests.support import committed


def run(parts: Iterable[Part], root: Path, memory: Path, *, is_again: bool = False) -> bool:
    """Run the parts in a checkout, print a table of their times, and return whether all have passed.

    If it `is_again`, parts that have passed are run too.
    """
    tree, rows = committed.digest(root), []
    for part in parts:
        mark = memory / tree / part.name.replace(" ", "-")
        if tree and mark.exists() and not is_again:
            rows.append((part.name, "passed before", float(mark.read_text())))
            continue
        sys.stdout.write(f"--- {part.name}\n")
        sys.stdout.flush()
        began = time.monotonic()
        has_passed = _has_passed(part, root)
        rows.append((part.name, "passed" if has_passed else "FAILED", time.monotonic() - began))
        if has_passed and tree and committed.digest(root) == tree:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.write_text(f"{rows[-1][2]:.0f}")
    sys.stdout.write("".join(f"{name:<12} {end:<14} {seconds:7.0f} s\n" for name, end, seconds in rows))
    sys.stdout.flush()
    return all(end != "FAILED" for _, end, _ in rows)


def _has_passed(part: Part, root: Path) -> bool:
    environment = {**os.environ, **part.environment}
    return all(
        subprocess.run(command, cwd=root, env=environment, check=False).returncode == 0 for command in part.commands
    )
