"""The seconds between two checkpoints: those of the rent, or those of the daemon's later advice.

1. An advice makes an interval at most `MOST_TIMES` times longer or shorter than that of the rent: every host of the
   workload has the bucket's key and could write one.
2. An advice for another lease, or one that cannot be read, changes nothing. The last one stays while the bucket is
   away.
"""

from __future__ import annotations

import math
from typing import Any, Mapping

from agent.guard.guard_settings import LEAST_INTERVAL_SECONDS, GuardSettings

MOST_TIMES = 4.0
MOST_STEPS, PAIR = 64, 2


class AdvisedInterval:
    """The interval by the age of this start."""

    def __init__(self, settings: GuardSettings) -> None:
        """Begin with the intervals of the rent."""
        self._settings = settings
        self._steps: tuple[tuple[float, float], ...] = ()

    def at(self, age_seconds: float) -> float:
        """Return the seconds between two checkpoints at an age."""
        given = self._settings.interval_at(age_seconds)
        fitting = [interval for age, interval in self._steps if age <= age_seconds]
        if not fitting:
            return given
        least = max(given / MOST_TIMES, min(given, LEAST_INTERVAL_SECONDS))
        return min(max(fitting[-1], least), given * MOST_TIMES)

    def take(self, note: Mapping[str, Any]) -> None:
        """Take the daemon's advice: pairs of an age and an interval, both in seconds."""
        pairs = note.get("by_age")
        if note.get("lease") != self._settings.lease or not isinstance(pairs, list) or len(pairs) > MOST_STEPS:
            return
        steps = [_step(pair) for pair in pairs]
        self._steps = tuple(sorted(step for step in steps if step is not None)) or self._steps


def _step(pair: object) -> tuple[float, float] | None:
    if not isinstance(pair, list) or len(pair) != PAIR:
        return None
    age, interval = (_number(value) for value in pair)
    return None if age is None or interval is None or age < 0 or interval <= 0 else (age, interval)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
