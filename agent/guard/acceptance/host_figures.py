"""All figures of a host at a start. Times are real seconds: programs run in real time."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any, Mapping

from agent.guard.acceptance import bounded_run, gpu_query, host_trial
from agent.guard.acceptance.bounded_run import BoundedRun
from agent.guard.acceptance.gpu_query import GpuAnswer, GpuQuery
from agent.guard.guard_clock import uptime
from agent.guard.reaper import Reaper

TRIAL_SECONDS, DISK_SECONDS, SCRIPT_SECONDS = 25.0, 5.0, 30.0
"""The longest times of the parts. The script gets the rest of the time: at least its own, or half of a shorter time."""
MOST_LINE = 200
_LOOK_SECONDS = 0.1
_HIDING = "CUDA_VISIBLE_DEVICES"
"""The variable by which the work may hide GPUs from itself: the check ignores it, since the host has them."""


class HostFigures:
    """Asks the host by programs."""

    def __init__(
        self, environment: Mapping[str, str], place: Path | None, reaper: Reaper, stopping: threading.Event
    ) -> None:
        """Run programs with the environment of the work, write to `place`, until the guard must stop."""
        self._environment = environment
        self._place = place
        self._reaper = reaper
        self._stopping = stopping
        self._query = GpuQuery(environment, reaper, stopping)

    def found(self, until: float, script: str | None) -> Mapping[str, Any]:
        """Return the figures measured up to a time of `uptime`, and how the operator's own check ended."""
        begun, end = uptime(), until
        if script is not None:
            until -= min(SCRIPT_SECONDS, (until - begun) / 2)
        answer = self._query.ask(until)
        gpus = [dict(gpu) for gpu in answer.gpus]
        found, loaded = self._tried(until)
        for gpu, under_load in zip(gpus, loaded.gpus):
            gpu.update({name: value for name, value in under_load.items() if name in gpu_query.LINK})
        return {
            "tool": answer.tool,
            "driver": answer.driver,
            "gpu_count": answer.count,
            "gpus": gpus,
            "is_under_load": bool(loaded.gpus),
            **found,
            **self._written(until),
            "script": None if script is None else self._scripted(script, end),
            "took_seconds": round(uptime() - begun, 3),
        }

    def _tried(self, until: float) -> tuple[Mapping[str, Any], GpuAnswer]:
        """Return the abilities of the GPUs, and the figures of their links while they copy."""
        until = min(until, uptime() + TRIAL_SECONDS)
        seen = {name: text for name, text in self._environment.items() if name != _HIDING}
        try:
            trial = BoundedRun(host_trial.words(host_trial.GPU), seen, self._reaper)
        except OSError:
            return {}, GpuAnswer(gpu_query.MISSING)
        loaded = GpuAnswer(gpu_query.MISSING)
        while trial.wait(min(until, uptime() + _LOOK_SECONDS), self._stopping) is None:
            if uptime() >= until or self._stopping.is_set():
                break
            if not loaded.gpus and host_trial.figures(trial.head()).get(host_trial.UNDER_LOAD) is True:
                loaded = self._query.ask(until, gpu_query.LINK)
        found = host_trial.figures(trial.ended(uptime(), self._stopping).head)
        found.pop(host_trial.UNDER_LOAD, None)
        return found, loaded

    def _written(self, until: float) -> Mapping[str, Any]:
        """Return how fast the disk writes, if it has room for the trial."""
        if self._place is None or shutil.disk_usage(self._place).free < 2 * host_trial.DISK_BYTES:
            return {}
        until = min(until, uptime() + DISK_SECONDS)
        words = host_trial.words(host_trial.DISK, str(self._place))
        ended = bounded_run.run(words, self._environment, self._reaper, until, self._stopping)
        return host_trial.figures(ended.head)

    def _scripted(self, script: str, until: float) -> Mapping[str, Any] | None:
        """Return how the operator's own check ended; its `code` is None if it did not end in time.

        Return None if it could not be started: that says nothing about the host.
        """
        words = ["sh", "-c", script]
        ended = bounded_run.run(words, self._environment, self._reaper, until, self._stopping, with_errors=True)
        if not ended.was_started:
            return None
        lines = [line.strip() for line in ended.tail.splitlines() if line.strip()]
        last = "".join(letter for letter in lines[-1] if letter.isprintable()) if lines else ""
        return {"code": ended.code, "last_line": last[:MOST_LINE]}
