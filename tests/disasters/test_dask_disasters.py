"""Disasters on a Dask cluster: the verdicts and the output of one process, whoever dies.

Schedulers and workers are Dask's own commands in processes on loopback.
"""

import dataclasses
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.disasters import __main__ as disasters
from tests.disasters import draw, play
from tests.disasters.life import Verdict
from tests.disasters.story import Deed, Story, Work
from tests.support import dask_boxes
from tests.support.dask_boxes import Boxes, Forker

QUIET = Story(7, ("vast",), (Work("w0", "service", "patient", 1),), 30.0, 0.0, 0)
BROKEN = dataclasses.replace(QUIET, deeds=(Deed(2, "pause"), Deed(3, "no such deed")))


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    with dask_boxes.forking() as found:
        yield found


@pytest.fixture(autouse=True)
def _logs_again() -> Iterator[None]:
    yield
    # A process that logs nothing would fail the next test that reads the log.
    structlog.reset_defaults()


def timeless(text: str) -> str:
    """Return an output without its seconds."""
    return re.sub(r"in \d+ s \([\d.]+ ms", "in N s (N ms", text)


def killing(boxes: Boxes, name: str) -> Any:
    """Return `disasters._verdicts`, but for a worker that is killed after the first verdict."""
    honest = disasters._verdicts

    def verdicts(*given: Any) -> Iterator[Verdict]:
        for number, verdict in enumerate(honest(*given)):
            if number == 0:
                boxes.kill(name)
            yield verdict

    return verdicts


@pytest.mark.nightly
@pytest.mark.long(40)
def test_a_killed_worker_changes_no_verdict_and_no_word(
    forker: Forker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(disasters, "SEEDS_OF_PART", 1)
    seen: list[list[Verdict]] = []
    summary = disasters._summary

    def told(verdicts: list[Verdict], *rest: Any) -> str:
        seen.append(verdicts)
        return summary(verdicts, *rest)

    monkeypatch.setattr(disasters, "_summary", told)
    assert disasters.main(["--seeds", "3", "--processes", "1"]) == 0
    alone = capsys.readouterr().out
    with dask_boxes.boxes(forker, tmp_path, "left", "right") as boxes:
        monkeypatch.setattr(disasters, "_verdicts", killing(boxes, "left"))
        assert disasters.main(["--seeds", "3", "--on", boxes.address]) == 0
        assert set(boxes.alive) == {"scheduler", "right"}
    there = capsys.readouterr()
    assert seen[0] == seen[1], "a verdict has a digest of every order of its story"
    assert timeless(there.out) == timeless(alone)
    assert "right (tcp://127.0.0.1:" in there.err


def breaking() -> None:
    """Let every even seed be a story that cannot be played to its end."""
    draw.story = lambda seed: QUIET if seed % 2 else BROKEN


@pytest.mark.nightly
def test_failing_seeds_are_told_shrunk_as_by_one_process(
    forker: Forker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(draw, "story", draw.story)
    breaking()
    words = ["--seeds", "3", "--first", "2"]
    assert disasters.main([*words, "--processes", "1"]) == 1
    alone = capsys.readouterr().out
    assert "seed 2: point 0" in alone
    assert "before cycle 3: no such deed" in alone
    assert "pause" not in alone, "it is shrunk"
    with dask_boxes.boxes(forker, tmp_path) as boxes:
        boxes.worker("one", before="tests.disasters.test_dask_disasters:breaking")
        boxes.await_workers(1)
        assert disasters.main([*words, "--on", boxes.address]) == 1
    assert timeless(capsys.readouterr().out) == timeless(alone)


def lying() -> None:
    """Let a worker say of every story that it went otherwise."""
    honest = play.play

    def told(story: Story, folder: Path | None = None) -> Verdict:
        return dataclasses.replace(honest(story, folder), digest="another")

    play.play = told


@pytest.mark.nightly
def test_a_worker_on_which_a_story_goes_otherwise_is_refused(
    forker: Forker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with dask_boxes.boxes(forker, tmp_path) as boxes:
        boxes.worker("liar", before="tests.disasters.test_dask_disasters:lying")
        boxes.await_workers(1)
        assert disasters.main(["--seeds", "1", "--on", boxes.address]) == 1
    told = capsys.readouterr()
    assert "(liar) computed another result" in told.err
    assert "0 failed" not in told.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--on", "tcp://10.0.0.5:8786"], "has no TLS; write tls://HOST:8786"),
        (["--on", "tcp://127.0.0.1:8786", "--folder", "."], "not allowed with argument"),
        (["--on", "tcp://127.0.0.1:8786", "--postgresql"], "not allowed with argument"),
    ],
)
def test_an_address_without_tls_and_ledgers_elsewhere_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        sys.exit(disasters.main(words))
    assert (ended.value.code, said in capsys.readouterr().err) == (2, True)
