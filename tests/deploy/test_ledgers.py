"""A ledger of every earlier schema is kept, and each is led to the present one with all that it holds."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from agent.ledger.file import ledger_check, migrate
from agent.ledger.tables import schema
from tests.deploy import keep_ledgers

LEDGERS = sorted((Path(__file__).parent / "ledgers").glob("*.sql"))
ALTERED = ("ALTER TABLE leases ADD COLUMN note TEXT", "DELETE FROM cooldowns", "INSERT INTO meta VALUES ('a', 'b')")


def definitions(path: Path) -> dict[str, str]:
    """Return the tables and indexes of a ledger, by name."""
    with closing(sqlite3.connect(path)) as raw:
        found = raw.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {name: "".join(sql.split()) for name, sql in found if not name.startswith("sqlite_")}


@pytest.fixture(scope="module")
def present(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Make a new ledger and return its tables and indexes."""
    path = tmp_path_factory.mktemp("new") / "ledger.sqlite"
    migrate.prepare(path)
    return definitions(path)


def test_every_earlier_schema_is_kept() -> None:
    kept = {file.stem for file in LEDGERS}
    assert kept == set(keep_ledgers.earlier()), "run `python -m tests.deploy.keep_ledgers` and commit its files"


@pytest.mark.parametrize("dump", LEDGERS, ids=lambda dump: dump.stem)
def test_it_is_led_to_the_present_schema(dump: Path, present: Mapping[str, str], tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    keep_ledgers.make(dump.stem, path)
    rests = "SELECT * FROM cooldowns ORDER BY scope, key"
    with closing(sqlite3.connect(path)) as raw:
        resting = raw.execute(rests).fetchall()
        before = {
            "leases": raw.execute("SELECT count(*) FROM leases").fetchone()[0],
            "events": raw.execute("SELECT count(*) FROM events").fetchone()[0],
        }
    assert migrate.stored_revision(path) == dump.stem
    migrate.prepare(path)
    found = ledger_check.verify(path)
    assert found.findings == ()
    assert found.revision == schema.REVISION
    assert {table: found.counted[table] for table in before} == before
    assert before["leases"] > 0
    assert resting
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute(rests).fetchall() == resting
    assert definitions(path) == present, "a migration that a release ran was edited: write another one"
    assert migrate.stored_revision(path.with_name(f"{path.name}.schema-{dump.stem}.sqlite")) == dump.stem


@pytest.mark.parametrize("change", ALTERED, ids=["altered", "dropped", "added"])
def test_what_is_kept_of_a_ledger_makes_it_again(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, again = tmp_path / "led.sqlite", tmp_path / "again.sqlite"
    folder = tmp_path / "ledgers"
    folder.mkdir()
    monkeypatch.setattr(keep_ledgers, "FOLDER", folder)
    migrate.prepare(path)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("INSERT INTO cooldowns VALUES ('host', 'vast/1', NULL, 1, 'slow', 1)")
        raw.commit()
    before = keep_ledgers.statements(path)
    (folder / f"{schema.FIRST}.sql").write_text(keep_ledgers.step(schema.FIRST, ["nothing yet"], before))
    with closing(sqlite3.connect(path)) as raw:
        raw.execute(change)
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
        raw.commit()
    (folder / "9999.sql").write_text(keep_ledgers.step("9999", before, keep_ledgers.statements(path)))
    keep_ledgers.make("9999", again)
    assert keep_ledgers.statements(again) == keep_ledgers.statements(path)
    assert migrate.stored_revision(again) == "9999"
