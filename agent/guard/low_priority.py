"""Low disk priority for a thread and those that it starts, so that the disk serves the work first."""

from __future__ import annotations

import shutil
import subprocess
import threading

from agent.guard.reaper import Reaper

PROGRAM = "ionice"
_LAST_OF_THE_USUAL = ("-c", "2", "-n", "7")
"""Not the idle class: on a busy disk a checkpoint would never be carried."""
_PATIENCE_SECONDS = 10.0


def take(reaper: Reaper) -> None:
    """Take the low priority for the calling thread, if the image has the program for it; else nothing changes."""
    if shutil.which(PROGRAM) is None:
        return
    words = [PROGRAM, *_LAST_OF_THE_USUAL, "-p", str(threading.get_native_id())]
    nothing = subprocess.DEVNULL
    try:
        process = reaper.start(
            lambda: subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing)  # noqa: S603 - words of ours
        )
    except OSError:
        return
    reaper.wait(process, _PATIENCE_SECONDS)
