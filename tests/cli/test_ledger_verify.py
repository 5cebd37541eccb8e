"""`gpubid ledger verify` distinguishes damage, contradictory sums, and a sound ledger."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.cli.shared import exits
from agent.cli.watch import ledger as verbs
from agent.ledger.file import ledger_check, migrate


def test_what_to_do_is_said_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ledger.sqlite"
    migrate.prepare(path)
    verbs._say_verified(ledger_check.verify(path))
    assert capsys.readouterr().out.rstrip().endswith("sound")
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(
            "INSERT INTO spend VALUES ('vast-1', '2026-07-27', 'interruptible', 'train', 'vast', 0, 0, 0, 10.0, 20.0)"
        )
    found = ledger_check.verify(path)
    verbs._say_verified(found)
    told = " ".join(capsys.readouterr().out.split())
    assert "inconsistent: more useful than running time: vast-1" in told
    assert "keep this ledger" in told
    assert "restore" not in told
    assert (found.is_sound, found.is_damaged, exits.FAILED, exits.DAMAGED) == (False, False, 1, 3)
