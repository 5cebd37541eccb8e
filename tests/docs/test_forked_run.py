"""The runner of CI runs each test once, in processes of their own, and tells what they tell."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import os, pathlib, pytest

PLACE = pathlib.Path(__file__).parent
ran = []

def tell(name):
    ran.append(name)
    with (PLACE / "ran").open("a") as told:
        told.write(f"{name} {os.getpid()}\\n")

@pytest.mark.parametrize("number", range(12))
def test_many(number, tmp_path):
    tell(number)
    print("heard from", os.environ["PYTEST_XDIST_WORKER"])
    assert os.environ["PYTEST_XDIST_WORKER"] in str(tmp_path)
    assert number != 7

def test_that_ends_its_process():
    tell("end")
    os._exit(3)

@pytest.mark.long(20)
def test_that_is_long():
    assert not ran
    tell("long")
"""


def test_each_test_runs_once_and_is_reported(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    words = ["-p", "tests.support.forked_run", "--forks", "2", "-p", "no:randomly", "-p", "no:cacheprovider", "--quiet"]
    words += ["--config-file", "/dev/null", "--rootdir", str(tmp_path), "--basetemp", str(tmp_path / "base")]
    run = subprocess.run(  # noqa: PLW1510 - it ends with 1
        [sys.executable, "-m", "pytest", *words, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 1, run.stdout + run.stderr
    told = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert sorted(name for name, _ in told) == sorted([*map(str, range(12)), "end", "long"])
    assert len({pid for _, pid in told}) >= 2
    assert "2 failed, 12 passed" in run.stdout
    assert "the fork that ran it ended: 3" in run.stdout
    assert "heard from gw" in run.stdout
