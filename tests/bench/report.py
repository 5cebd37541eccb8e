"""One line a measurement: the figure, the figure of comparison, the bound, and whether it holds."""

import gc
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def against(rounds: int, ours: Callable[[], T], theirs: Callable[[], object]) -> tuple[float, float, T]:
    """Return the least CPU seconds of each, and our last result. They run by turns, so a busy machine slows both."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        gc.collect()
        began = time.process_time()
        made = ours()
        seconds[0].append(time.process_time() - began)
        began = time.process_time()
        other = theirs()
        seconds[1].append(time.process_time() - began)
        # The results of a round are freed outside the measured time.
        del other
    return min(seconds[0]), min(seconds[1]), made


def line(name: str, figure: str, compared: str, *, holds: bool | None = None) -> bool:
    """Print one measurement; return whether its bound holds."""
    verdict = "" if holds is None else "  ok" if holds else "  NOT HELD"
    print(f"  {name:<64} {figure:<34} {compared}{verdict}", flush=True)
    return holds is not False
