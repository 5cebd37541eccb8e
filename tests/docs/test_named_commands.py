"""Each `gpubid` command in the text of a document has a verb and options that the program has.

`tests/cli/test_handbook_commands.py` types the commands in blocks.
"""

import functools
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from agent.cli import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *(path for path in (ROOT / "deploy").rglob("*.md") if "decisions" not in path.parts),
    ]
)
NAMED = re.compile(r"`gpubid ((?!is |rents )[^`]+)`")
OF_TYPER = {"--help", "-h", "--install-completion", "--show-completion"}


@functools.cache
def program() -> Any:
    """Return the whole command line, of the Click inside Typer."""
    return typer.main.get_command(main.app)


def unknown(words: list[str]) -> str:
    """Return the first word of a command that the program does not know, or nothing."""
    command = program()
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0].isupper() or words[0] == "...":
            return ""
        if words[0] not in command.commands:
            return words[0]
        command, words = command.commands[words[0]], words[1:]
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | OF_TYPER
    return next((word for word in words if word.startswith("--") and word.partition("=")[0] not in options), "")


def test_every_named_command_exists() -> None:
    named = [
        (path.name, " ".join(text.split())) for path in DOCUMENTS for text in NAMED.findall(path.read_text("utf-8"))
    ]
    assert len(named) > 100
    assert [(name, text) for name, text in named if unknown(shlex.split(text))] == []


@pytest.mark.parametrize("text", ["leap", "kill --softly", "ledger burn", "ledger verify --loud"])
def test_a_command_that_does_not_exist_is_seen(text: str) -> None:
    assert unknown(text.split())
