"""A ledger of every earlier schema is kept, and each is led to the present one with all that it holds."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.ledger import migrate, schema, verify
from tests.deploy import keep_ledgers

LEDGERS = sorted((Path(__file__).parent / "ledgers").glob("*.sql"))


def test_every_earlier_schema_is_kept() -> None:
    kept = {file.stem for file in LEDGERS}
    assert kept == set(keep_ledgers.earlier()), "run `python -m tests.deploy.keep_ledgers` and commit what it writes"


@pytest.mark.parametrize("dump", LEDGERS, ids=lambda dump: dump.stem)
def test_it_is_led_to_the_present_schema(dump: Path, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(dump.read_text())
        before = {
            "leases": raw.execute("SELECT count(*) FROM leases").fetchone()[0],
            "events": raw.execute("SELECT count(*) FROM events").fetchone()[0],
        }
    assert migrate.stored_revision(path) == dump.stem
    migrate.prepare(path)
    found = verify.verify(path)
    assert found.findings == ()
    assert found.revision == schema.REVISION
    assert {table: found.counted[table] for table in before} == before
    assert before["leases"] > 0
    assert migrate.stored_revision(path.with_name(f"{path.name}.schema-{dump.stem}.sqlite")) == dump.stem
