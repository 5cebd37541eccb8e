"""A night runs all of its parts, says how long each took, and goes on where it was broken off."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.night import night
from tests.night.parts import Part, parts

WRITES = """\
import os, pathlib
(pathlib.Path.cwd().parent / "ran").open("a").write(os.environ.get("WORD", "one") + " ")
"""
PASSES = Part("passes well", ((sys.executable, "-c", WRITES),))
FAILS = Part("fails", ((sys.executable, "-c", "raise SystemExit(3)"), (sys.executable, "-c", WRITES)))
LATER = Part("later", ((sys.executable, "-c", WRITES),), {"WORD": "two"})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    root.mkdir()
    commit(root, "first")
    return root


def commit(root: Path, text: str) -> None:
    (root / "file").write_text(text)
    who = ("-c", "user.name=night", "-c", "user.email=night@example.org")
    for words in (("init", "--quiet"), ("add", "file"), (*who, "commit", "--quiet", "--message", text)):
        subprocess.run(["git", "-C", str(root), *words], check=True)


def ran(root: Path) -> list[str]:
    """Return the words of the commands that ran since the last question."""
    file = root.parent / "ran"
    words = file.read_text().split() if file.exists() else []
    file.unlink(missing_ok=True)
    return words


def test_a_part_that_fails_hides_no_other_one(
    checkout: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not night.run([PASSES, FAILS, LATER], checkout, tmp_path / "memory")
    assert ran(checkout) == ["one", "two"]
    told = [" ".join(line.split()[:-2]) for line in capfd.readouterr().out.splitlines()[-3:]]
    assert told == ["passes well passed", "fails FAILED", "later passed"]


def test_what_passed_on_this_tree_is_not_run_again(checkout: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    assert night.run([PASSES], checkout, memory)
    assert night.run([PASSES, LATER], checkout, memory)
    assert ran(checkout) == ["one", "two"]
    assert night.run([PASSES], checkout, memory, is_again=True)
    assert ran(checkout) == ["one"]
    commit(checkout, "second")
    assert night.run([PASSES], checkout, memory)
    assert ran(checkout) == ["one"]


def test_a_changed_file_is_neither_remembered_nor_taken_from_memory(checkout: Path, tmp_path: Path) -> None:
    (checkout / "file").write_text("changed")
    assert night.run([PASSES], checkout, tmp_path / "memory")
    assert night.run([PASSES], checkout, tmp_path / "memory")
    assert ran(checkout) == ["one", "one"]
    assert not (tmp_path / "memory").exists()


def test_what_is_recorded_in_the_checkout_is_not_run_again_elsewhere(checkout: Path, tmp_path: Path) -> None:
    assert night.run([PASSES], checkout, tmp_path / "here")
    runs = night.kept(checkout, tmp_path / "here")
    assert runs is not None
    (checkout / night.RECORDED).parent.mkdir(parents=True)
    assert runs.record() == 1
    assert night.run([PASSES, LATER], checkout, tmp_path / "another machine")
    assert ran(checkout) == ["one", "two"]
    commit(checkout, "second")
    assert night.run([PASSES], checkout, tmp_path / "another machine")
    assert ran(checkout) == ["one"]


def test_every_part_has_a_name_of_its_own() -> None:
    names = [part.name for part in parts(20_000, 60)]
    assert len(set(names)) == len(names)
