"""The note of a host's check: its missing figures, and that a bucket that hangs does not delay the work."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.guard import guard_settings
from agent.guard.acceptance import acceptance_check, bounded_run, host_trial
from agent.guard.acceptance.acceptance_check import AcceptanceCheck
from agent.guard.acceptance.bounded_run import Ended
from agent.guard.acceptance.gpu_query import GpuAnswer, GpuQuery
from agent.guard.acceptance.host_figures import HostFigures
from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock, uptime
from agent.guard.guard_output import GuardOutput
from agent.guard.reaper import Reaper
from tests.support.guarded import ROOT, Instance, until
from tests.support.memory_store import MemoryStore


class Silent(MemoryStore):
    """A store that takes a request and answers once it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()

    def put(self, key: str, body: bytes, *, tag: str | None = None, is_new: bool = False) -> bool:
        self.answers.wait(30)
        return super().put(key, body, tag=tag, is_new=is_new)


class Nothing(HostFigures):
    """A host of which nothing can be had."""

    def __init__(self) -> None:
        pass

    def found(self, until: float, script: str | None) -> dict[str, Any]:
        assert until > 0
        assert script is None
        return {}


def test_a_bucket_that_hangs_keeps_the_work_back_for_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance_check, "PATIENCE_SECONDS", 0.2)
    told = Instance(tmp_path).settings(acceptance={"seconds": 60})
    settings = guard_settings.read({"GPUBID_GUARD": json.dumps(told)})
    store, stopping = Silent(), threading.Event()
    notes = BucketNotes(store, ROOT)
    AcceptanceCheck(settings, Nothing(), GuardOutput(), GuardClock(), notes, stopping).run()
    assert store.objects == {}
    store.answers.set()
    until(lambda: notes.read("acceptance-L1.json"), "the note")


def asked(monkeypatch: pytest.MonkeyPatch, seconds: float, ended: Ended) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the report after a script that ended so, and the seconds that each program was given."""
    begun, given = uptime(), dict[str, float]()

    def run(words: Sequence[str], _env: object, _reaper: object, until: float, *_: object, **__: object) -> Ended:
        given[words[0]] = until - begun
        return ended

    def ask(_query: GpuQuery, until: float, *_: object) -> GpuAnswer:
        given["nvidia-smi"] = until - begun
        return GpuAnswer("missing")

    monkeypatch.setattr(bounded_run, "run", run)
    monkeypatch.setattr(GpuQuery, "ask", ask)
    monkeypatch.setattr(host_trial, "words", lambda *_: ["/nowhere/it"])
    host = HostFigures({}, None, Reaper(), threading.Event())
    return dict(host.found(begun + seconds, "check")), given


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (Ended(None, is_missing=True, was_started=False), None),
        (Ended(126, tail="no memory", was_started=False), None),
        (Ended(None), {"code": None, "last_line": ""}),
        (Ended(126, tail="denied"), {"code": 126, "last_line": "denied"}),
    ],
)
def test_a_script_that_could_not_be_started_is_not_known(
    monkeypatch: pytest.MonkeyPatch, ended: Ended, told: dict[str, Any] | None
) -> None:
    assert asked(monkeypatch, 60, ended)[0]["script"] == told


def test_what_cannot_be_started_says_so() -> None:
    for words in (["/nowhere/it"], ["/dev/null"]):
        ended = bounded_run.run(words, {}, Reaper(), uptime() + 9, threading.Event())
        assert not ended.was_started


@pytest.mark.parametrize(("seconds", "kept"), [(60.0, 30.0), (20.0, 10.0)])
def test_a_script_has_its_time_whatever_came_before(
    monkeypatch: pytest.MonkeyPatch, seconds: float, kept: float
) -> None:
    _, given = asked(monkeypatch, seconds, Ended(0))
    assert given["sh"] == pytest.approx(seconds)
    assert given["nvidia-smi"] <= seconds - kept + 1
