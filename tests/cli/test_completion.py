"""The shell completes names of the configuration and the program: workloads, slots, strategies, climates, kinds."""

import asyncio
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli import main
from tests.support import programs
from tests.support.configs import added

CONFIG = added("slots = 3") + '[strategies]\ndirectory = "mine"\n'


def asked(typed: str) -> dict[str, str]:
    """Return the variables by which bash asks after a line."""
    words = typed.split(" ")
    return {"_GPUBID_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}


async def completed(place: Path, typed: str) -> set[str]:
    """Return what bash is offered after a line."""
    program = str(Path(sys.executable).parent / "gpubid")
    process = await asyncio.create_subprocess_exec(
        program,
        cwd=place,
        env=programs.environment(place, **asked(typed)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert err == b"", "a shell shows no errors between two key strokes"
    return set(out.decode().split())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "agent.toml").write_text(CONFIG)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bold.toml").write_text('strategy = "patient"\n')
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("gpubid drain tr", {"train", "train/0", "train/1", "train/2"}),
        ("gpubid kill train/", {"train/0", "train/1", "train/2"}),
        ("gpubid logs train/2", {"train/2"}),
        ("gpubid ledger events --workload t", {"train", "train/0", "train/1", "train/2"}),
        ("gpubid ledger events --kind lease.interr", {"lease.interrupted"}),
        ("gpubid strategy show bo", {"bold"}),
        ("gpubid rehearse --strategy pat", {"patient"}),
        ("gpubid rehearse --climate bidd", {"bidding_war"}),
        ("gpubid drain nothing", set()),
    ],
)
def test_names_are_completed(place: Path, monkeypatch: pytest.MonkeyPatch, typed: str, offered: set[str]) -> None:
    monkeypatch.chdir(place)
    monkeypatch.delenv("GPUBID_CONFIG", raising=False)
    ran = CliRunner().invoke(main.app, [], env=asked(typed), prog_name="gpubid")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert set(ran.stdout.split()) == offered


async def test_the_installed_program_completes_the_same(place: Path) -> None:
    assert await completed(place, "gpubid kill train/") == {"train/0", "train/1", "train/2"}


@pytest.mark.nightly
async def test_a_broken_or_missing_file_completes_nothing_and_says_nothing(tmp_path: Path) -> None:
    assert await completed(tmp_path, "gpubid drain tr") == set()
    (tmp_path / "agent.toml").write_text("[oops\n")
    assert await completed(tmp_path, "gpubid drain tr") == set()
