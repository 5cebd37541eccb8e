"""The answers of `nvidia-smi` about the GPUs, with bounds on their time and size. A missing figure is None.

No answer is trusted. Drivers know different fields, and write in different ways that a card has no such figure. A
broken driver hangs, or prints errors in the place of values.
"""

from __future__ import annotations

import math
import re
import threading
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Sequence

from agent.guard.acceptance import bounded_run
from agent.guard.acceptance.bounded_run import Ended
from agent.guard.guard_clock import uptime
from agent.guard.reaper import Reaper

PROGRAM = "nvidia-smi"
SECONDS = 15.0
"""A driver without persistence mode wakes eight cards in some seconds."""
OK, MISSING, FAILED, SLOW, UNREADABLE = "ok", "missing", "failed", "slow", "unreadable"
MOST_GPUS, MOST_COUNTED, MOST_TRIES = 16, 64, 6
MOST_NAME, MOST_NUMBER = 64, 1e9
FIELDS: tuple[tuple[str, str], ...] = (
    ("name", "name"),
    ("memory_mb", "memory.total"),
    ("driver", "driver_version"),
    ("is_split", "mig.mode.current"),
    ("uncorrected_errors", "ecc.errors.uncorrected.volatile.total"),
    ("power_limit_watts", "power.limit"),
    ("power_default_watts", "power.default_limit"),
    ("pcie_generation", "pcie.link.gen.current"),
    ("pcie_generation_most", "pcie.link.gen.max"),
    ("pcie_width", "pcie.link.width.current"),
    ("pcie_width_most", "pcie.link.width.max"),
    ("clock_events", "clocks_event_reasons.active"),
    ("temperature_c", "temperature.gpu"),
)
"""Our name of a figure, and the vendor's."""
LINK = ("name", "pcie_generation", "pcie_width", "clock_events")
"""Figures that are only true while the GPU has something to do."""
USE = {"gpu_use": "utilization.gpu"}
"""The figure that is read again and again beside the work."""
_OLDER = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
_UNKNOWN_FIELD = re.compile(r'Field "([a-z0-9_.]{1,64})" is not a valid field')
_WHOLE = frozenset({"uncorrected_errors", "pcie_generation", "pcie_generation_most", "pcie_width", "pcie_width_most"})
_NUMBERS = _WHOLE | {"memory_mb", "power_limit_watts", "power_default_watts", "temperature_c", *USE}
_REASONS = re.compile(r"0x[0-9a-fA-F]{1,16}")


@dataclass(frozen=True)
class GpuAnswer:
    """An answer: how the program ended, how many GPUs it named, and the figures of the first of them."""

    tool: str
    count: int | None = None
    driver: str | None = None
    gpus: tuple[Mapping[str, Any], ...] = ()


class GpuQuery:
    """Asks `nvidia-smi`; remembers which fields this driver does not know."""

    def __init__(
        self,
        environment: Mapping[str, str],
        reaper: Reaper,
        stopping: threading.Event,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        """Run it with an environment, until the guard must stop. It knows `fields`, or all fields of the check."""
        self._environment = environment
        self._reaper = reaper
        self._stopping = stopping
        self._fields = dict(FIELDS) if fields is None else dict(fields)

    def ask(self, until: float, names: Sequence[str] = tuple(dict(FIELDS))) -> GpuAnswer:
        """Return these figures, asked up to a time of `uptime` and for `SECONDS` at most."""
        until = min(until, uptime() + SECONDS)
        return answered(lambda fields: self._run(fields, until), self._fields, names)

    def _run(self, fields: Sequence[str], until: float) -> Ended:
        words = [PROGRAM, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        return bounded_run.run(words, self._environment, self._reaper, until, self._stopping)


def answered(run: Callable[[Sequence[str]], Ended], known: dict[str, str], names: Sequence[str]) -> GpuAnswer:
    """Ask by `run` until the driver knows every field; a field that it does not know leaves `known`."""
    ended = Ended(None)
    for _ in range(MOST_TRIES):
        asked = [name for name in names if name in known]
        if not asked:
            return GpuAnswer(UNREADABLE)
        ended = run([known[name] for name in asked])
        refused = _UNKNOWN_FIELD.search(ended.head) if ended.code else None
        name = next((each for each in asked if refused is not None and known[each] == refused.group(1)), None)
        if name is None:
            return _read(ended, asked)
        older = _OLDER.get(known.pop(name))
        if older is not None:
            known[name] = older
    return GpuAnswer(FAILED)


def _read(ended: Ended, names: Sequence[str]) -> GpuAnswer:
    if ended.is_missing:
        return GpuAnswer(MISSING)
    if ended.code is None:
        return GpuAnswer(SLOW)
    if "no devices were found" in ended.head.lower():
        return GpuAnswer(OK, 0)
    if ended.code != 0:
        return GpuAnswer(FAILED)
    lines = [line for line in ended.head.splitlines() if line.strip()]
    rows = [[part.strip() for part in line.split(",")] for line in lines[:MOST_COUNTED]]
    if not rows or len(ended.head) >= bounded_run.MOST_KEPT or any(len(row) != len(names) for row in rows):
        return GpuAnswer(UNREADABLE)
    gpus = [{name: _value(name, text) for name, text in zip(names, row)} for row in rows[:MOST_GPUS]]
    drivers: list[Any] = [gpu.pop("driver", None) for gpu in gpus]
    return GpuAnswer(OK, len(rows), drivers[0], tuple(gpus))


def _value(name: str, text: str) -> object:
    """Return a figure, or None for the many ways to say that there is none."""
    if name == "is_split":
        return text == "Enabled"
    if name == "clock_events":
        return text.lower() if _REASONS.fullmatch(text) else None
    if name in _NUMBERS:
        number = _number(text)
        return int(number) if number is not None and name in _WHOLE else number
    is_text = bool(text) and text.isprintable() and not text.startswith("[") and text not in {"N/A", "ERR!"}
    return text[:MOST_NAME] if is_text else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= MOST_NUMBER else None
