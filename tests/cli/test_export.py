"""`gpubid ledger export`: the files that it writes, and its refusals."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli import main
from agent.clock import SystemClock
from agent.ledger.file.table_export import TABLES
from agent.ledger.store import Ledger
from tests.support.configs import GOOD


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def made() -> None:
        await (await Ledger.open(tmp_path / "gpubid.sqlite", clock=SystemClock())).close()

    (tmp_path / "agent.toml").write_text(GOOD)
    asyncio.run(made())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def export(*arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(main.app, ["ledger", "export", *arguments], env={"COLUMNS": "200"})
    assert ran.exit_code == code, ran.output
    return ran.output


def test_every_table_by_default_and_named_ones_if_asked(place: Path) -> None:
    export("--to", "all")
    assert sorted(file.name for file in (place / "all").iterdir()) == [f"{name}.csv" for name in TABLES]
    said = json.loads(export("--to", "two", "--format", "parquet", "--table", "leases", "--table", "spend", "--json"))
    assert [(one["table"], one["file"], one["rows"]) for one in said] == [
        ("leases", "two/leases.parquet", 0),
        ("spend", "two/spend.parquet", 0),
    ]


def test_nothing_is_overwritten(place: Path) -> None:
    export("--to", "all", "--table", "leases")
    before = (place / "all" / "leases.csv").read_bytes()
    said = export("--to", "all", code=2)
    assert "all/leases.csv exists; name another folder, or remove it" in said
    assert [file.name for file in (place / "all").iterdir()] == ["leases.csv"]
    export("--to", "all", "--table", "spend", "--table", "events")
    said = export("--to", "all", code=2)
    assert "all/events.csv and 2 other files to be written exist; name another folder, or remove them" in said
    assert said.count("name another") == 1
    assert (place / "all" / "leases.csv").read_bytes() == before


def test_an_unknown_table_is_named_with_the_nearest(place: Path) -> None:
    assert "--table: no table 'lease'; did you mean leases?" in export("--to", "x", "--table", "lease", code=2)
    assert not (place / "x").exists()


def test_without_pyarrow_parquet_says_how_to_install_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "agent.ledger.file.parquet_file", raising=False)
    monkeypatch.delattr("agent.ledger.file.parquet_file", raising=False)
    said = export("--to", "x", "--format", "parquet", code=2)
    assert "Parquet needs PyArrow; install it with pip install 'gpubid[parquet]', or use --format csv" in said
    assert not (place / "x").exists()
    export("--to", "x", "--table", "leases")


def test_without_a_ledger_nothing_is_made(place: Path) -> None:
    (place / "gpubid.sqlite").unlink()
    assert "gpubid.sqlite" in export("--to", "x", code=1)
    assert not (place / "gpubid.sqlite").exists()
