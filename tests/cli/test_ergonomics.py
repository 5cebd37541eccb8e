"""How it is to use: help, version, completion, progress at a terminal only, text that a pipe can read."""

import asyncio
import os
import pty
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich import markup
from typer.main import get_command
from typer.testing import CliRunner

from agent import __version__
from agent.cli import main
from agent.cli.shared import session
from agent.config.linting import lint
from tests.support import launch, programs
from tests.support.configs import GOOD
from tests.support.programs import gpubid

VERBS = sorted(
    {
        command.name or command.callback.__name__
        for command in main.app.registered_commands
        if command.callback and not command.hidden
    }
    | {str(group.name) for group in main.app.registered_groups}
)
ROOT = Path(__file__).parents[2]
LOOKS_DRAWN = re.compile(r"[━⠋⠙⠹⠸]|\x1b\[")


async def test_without_arguments_it_shows_its_verbs(tmp_path: Path) -> None:
    ran = await gpubid(tmp_path)
    assert ran.code == 2
    said = ran.out + ran.err
    assert all(re.search(rf"\b{verb}\b", said) for verb in VERBS)
    assert "Exit codes: 0 done, 1 it could not be done, 2 bad input" in said
    panels = re.findall(r"─ (Look|Act|Money|Tune|Set up) ─", said)
    assert panels == ["Look", "Act", "Money", "Tune", "Set up"], "by what people do"
    assert not re.search(r"│ report ", said), "the old name of bug-report works and is not shown"


@pytest.mark.parametrize("group", ["ledger", "strategy"])
async def test_a_group_without_a_verb_shows_its_verbs(tmp_path: Path, group: str) -> None:
    ran = await gpubid(tmp_path, group)
    assert ran.code == 2
    assert f"{group} [OPTIONS] COMMAND" in ran.out + ran.err


@pytest.mark.parametrize("verb", [*VERBS, "ledger events", "strategy diff"])
def test_every_verb_explains_itself(verb: str) -> None:
    short, long = (CliRunner().invoke(main.app, [*verb.split(), flag]) for flag in ("-h", "--help"))
    assert (short.exit_code, long.exit_code) == (0, 0)
    assert short.output == long.output
    assert re.search(rf"Usage: \S+ {verb} ", short.output)


def helps(command: Any) -> Iterator[str]:
    # A backspace tells typer to keep the lines of a paragraph; it is not shown.
    yield from (text.replace("\b", "") for each in (command, *command.params) if (text := getattr(each, "help", None)))
    for inner in getattr(command, "commands", {}).values():
        yield from helps(inner)


def test_no_word_of_a_help_is_taken_for_markup() -> None:
    lost = [text for text in helps(get_command(main.app)) if markup.render(text).plain != text]
    assert not lost, "what looks like a table, [markets.NAME], is left out where the help is shown"


async def test_help_in_a_pipe_is_plain_text(tmp_path: Path) -> None:
    ran = await gpubid(tmp_path, "ledger", "events", "-h")
    assert ran.code == 0
    assert "Usage: python -m agent ledger events [OPTIONS]" in ran.out
    assert not LOOKS_DRAWN.search(ran.out)


async def test_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = await gpubid(tmp_path, "--version")
    assert (ran.code, ran.out) == (0, f"gpubid {__version__}\n")
    code = "import time; began = time.perf_counter(); import agent.cli.main; print(time.perf_counter() - began)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    with capsys.disabled():
        print(f"\nimport of the command line: {float(out):.2f} s")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_completion(tmp_path: Path, shell: str) -> None:
    """The shell is named, since a program that no shell started cannot detect one."""
    program = str(Path(sys.executable).parent / "gpubid")
    named = programs.environment(tmp_path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    process = await asyncio.create_subprocess_exec(
        program, "--show-completion", shell, env=named, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    assert f"_GPUBID_COMPLETE=complete_{shell}".encode() in out


async def test_completion_knows_the_verbs(tmp_path: Path) -> None:
    program = str(Path(sys.executable).parent / "gpubid")
    asked = {"_GPUBID_COMPLETE": "complete_bash", "COMP_WORDS": "gpubid re", "COMP_CWORD": "1"}
    process = await asyncio.create_subprocess_exec(
        program, env=programs.environment(tmp_path, **asked), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert {verb for verb in VERBS if verb.startswith("re")} == set(out.decode().split())


async def test_the_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, agent.cli.main; print(sorted({'aiohttp', 'sqlalchemy', 'vastai', 'alembic'} & set(sys.modules)))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert out.decode() == "[]\n"


@pytest.mark.nightly
async def test_a_rehearsal_in_a_pipe_is_plain_text(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(GOOD)
    ran = await gpubid(tmp_path, "rehearse", "--hours", "2")
    assert ran.code == 0, ran
    assert ran.err == ""
    assert not LOOKS_DRAWN.search(ran.out)
    assert max(map(len, ran.out.splitlines())) <= 140
    assert "Useful" in ran.out


@pytest.mark.nightly
async def test_a_rehearsal_at_a_terminal_shows_its_progress_and_takes_it_away(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(GOOD)
    shown = await at_a_terminal(tmp_path, "rehearse", "--hours", "2", "--json")
    assert "2 simulated hours" in shown
    assert "━" in shown
    assert "2 simulated hours" not in shown.rpartition("\x1b[2K")[2], "the bar was left behind"


async def at_a_terminal(place: Path, *arguments: str) -> str:
    """Run a verb with standard error on a terminal and give what that showed."""
    ours, theirs = pty.openpty()
    process = await launch.start(
        "agent",
        *arguments,
        folder=place,
        environment=programs.environment(place, TERM="xterm"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = await asyncio.to_thread(_drained, ours)
    assert await process.wait() == 0, shown
    return shown


def _drained(terminal: int) -> str:
    content = b""
    try:
        while more := os.read(terminal, 65536):
            content += more
    except OSError:
        # How a terminal says that its other end is closed.
        pass
    os.close(terminal)
    return content.decode()


async def test_a_stop_while_the_command_line_loads_is_silent(tmp_path: Path) -> None:
    interrupts = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (tmp_path / "typer.py").write_text(interrupts)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "check"),
        env=programs.environment(tmp_path, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert await process.communicate() == (b"", b"")
    assert process.returncode == -signal.SIGINT


async def test_a_stop_in_a_verb_is_the_verbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    monkeypatch.setattr(lint, "findings", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    # A checkout in which somebody ran the program has a ledger, and `check` would read it.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.toml").write_text(GOOD)
    try:
        ran = CliRunner().invoke(main.app, ["check", "--config", str(tmp_path / "agent.toml")])
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran.exit_code == 130


@pytest.mark.parametrize("verb", ["check --json", "strategy list"])
async def test_an_output_onto_a_full_disk_is_named_without_a_traceback(tmp_path: Path, verb: str) -> None:
    (tmp_path / "agent.toml").write_text(GOOD)
    full = os.open("/dev/full", os.O_WRONLY)
    process = await launch.start(
        "agent", *verb.split(), folder=tmp_path, environment=programs.environment(tmp_path), stdout=full
    )
    os.close(full)
    _, told = await process.communicate()
    fix = "free space there, then type it again"
    assert told.decode() == f"gpubid: the output cannot be written (No space left on device): {fix}\n"
    assert process.returncode == 1


@pytest.mark.parametrize("verb", ["simulate --about", "check --json", "strategy list"])
async def test_a_reader_that_has_left_is_no_defect(tmp_path: Path, verb: str) -> None:
    (tmp_path / "agent.toml").write_text(GOOD)
    reader, writer = os.pipe()
    os.close(reader)
    process = await asyncio.create_subprocess_exec(
        *programs.command(*verb.split()),
        cwd=tmp_path,
        env=programs.environment(tmp_path),
        stdout=writer,
        stderr=asyncio.subprocess.PIPE,
    )
    os.close(writer)
    _, err = await process.communicate()
    assert err == b""


def test_no_figure_of_a_wide_table_is_cut_in_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "is_terminal", lambda *_: False)
    made = session.table(*(f"column {number}" for number in range(30)))
    session.add(made, *(f"{1000 + number}.123456" for number in range(30)))
    session.show(made)
    heading, row = capsys.readouterr().out.splitlines()
    assert row.split() == [f"{1000 + number}.123456" for number in range(30)]
    assert "column 29" in heading


@pytest.mark.parametrize("folded", ["", "reason"])
@pytest.mark.parametrize("columns", [60, 200])
def test_a_table_too_wide_for_a_terminal_is_printed_row_by_row(
    columns: int, folded: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "is_terminal", lambda *_: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    cells = [
        "2026-11-20 10:41:09",
        "train/0",
        "vast-57070548",
        "$0.082700/h",
        "$1,234.567890",
        "it was outbid by a rival",
    ]
    made = session.table("at", "slot", "lease", "price", "money", "reason", folded=folded)
    session.add(made, *cells)
    session.show(made)
    told = capsys.readouterr().out
    assert all(cell in told for cell in cells[:5])
    assert all(len(line.rstrip()) <= columns for line in told.splitlines())
    assert told.startswith("at      2026-11-20 10:41:09\n") is (columns == 60)


def test_no_word_of_a_text_that_may_fold_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "is_terminal", lambda *_: True)
    monkeypatch.setenv("COLUMNS", "60")
    name = "vast-57070548123456789012345678901234567890123"
    made = session.table("slot", "lease", "why", folded="why")
    session.add(made, "train/0", "vast-1", f"it waits until {name} is released")
    session.show(made)
    assert name in capsys.readouterr().out
