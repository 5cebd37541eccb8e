"""The use of the GPUs in the guard's beat: what is read of the driver, and when it is no longer asked."""

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.guard.acceptance import gpu_query, gpu_use
from agent.guard.acceptance.bounded_run import Ended
from agent.guard.acceptance.gpu_query import GpuAnswer, GpuQuery
from agent.guard.acceptance.gpu_use import GpuUse
from agent.guard.guard_clock import GuardClock
from agent.simulator.processes import simulated_gpus
from tests.support.guarded import Instance, until


def busiest(text: str) -> float | None:
    answer = gpu_query.answered(lambda _: Ended(0, text), dict(gpu_query.USE), tuple(gpu_query.USE))
    return gpu_use.busiest(answer)


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("97\n", 97.0),
        ("0\n0\n3\n", 3.0),
        ("0\n", 0.0),
        ("[N/A]\n", None),
        ("97\n[N/A]\n", None),
        ("101\n", None),
        ("-1\n", None),
        ("nan\n", None),
        ("", None),
    ],
)
def test_the_busiest_gpu_counts_and_an_odd_figure_is_unknown(text: str, use: float | None) -> None:
    assert busiest(text) == use


def test_more_gpus_than_are_read_are_unknown() -> None:
    assert busiest("1\n" * (gpu_query.MOST_GPUS + 1)) is None


class Answers(GpuQuery):
    """A driver that gives these answers, one after another, and the last one again and again."""

    def __init__(self, *answers: GpuAnswer) -> None:
        self._answers = list(answers)
        self.asked = 0

    def ask(self, until: float, names: Sequence[str] = ()) -> GpuAnswer:
        del until, names
        self.asked += 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.mark.parametrize(("tool", "asked"), [(gpu_query.MISSING, 1), (gpu_query.SLOW, gpu_use.MOST_SLOW)])
def test_a_driver_that_is_missing_or_hangs_is_not_asked_for_ever(
    monkeypatch: pytest.MonkeyPatch, tool: str, asked: int
) -> None:
    monkeypatch.setattr(gpu_use, "LEAST_REAL_SECONDS", 0.0)
    driver, seen = Answers(GpuAnswer(tool)), list[float | None]()
    GpuUse(driver, GuardClock(1000.0), threading.Event(), lambda: True, seen.append).start()
    until(lambda: len(seen) == asked, "its last reading")
    until(lambda: not any(each.name == "gpu-use" for each in threading.enumerate()), "the end of its thread")
    assert (driver.asked, seen) == (asked, [None] * asked)


def test_the_use_is_in_the_beat_of_running_work(tmp_path: Path) -> None:
    simulated_gpus.put_driver(tmp_path / "bin")
    cards = {"name": "x", "count": 2, "memory_mb": 1, "driver": "1", "power_watts": 1.0, "errors": 0, "use": 42}
    told = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SIM_GPUS": json.dumps(cards)}
    with Instance(tmp_path / "instance").started("sleep", "60", env=told) as guard:
        until(lambda: any(beat["gpu_use"] == 42.0 for beat in guard.beats()), "the figure in a beat")


def test_nothing_is_asked_before_the_work_runs_and_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_use, "LEAST_REAL_SECONDS", 0.0)
    driver, seen = Answers(GpuAnswer(gpu_query.OK, 1, None, ({"gpu_use": 3.0},))), list[float | None]()
    stopping = threading.Event()
    GpuUse(driver, GuardClock(1000.0), stopping, lambda: False, seen.append).start()
    until(lambda: len(seen) >= 2, "two readings")
    stopping.set()
    assert driver.asked == 0
    assert seen[:2] == [None, None]


def test_a_container_without_a_driver_beats_on(tmp_path: Path) -> None:
    with Instance(tmp_path / "instance").started("sh", "-c", "exit 7") as guard:
        assert guard.ended() == 7
    assert all(beat["gpu_use"] is None for beat in guard.beats())
