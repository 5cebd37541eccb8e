"""Migrations lead to exactly the schema, keep existing rows, and happen whole or not at all."""

# ruff: noqa: ASYNC240 - a test may wait for its own files and programs

import importlib.resources
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from agent.clock import SteppedClock
from agent.ledger import reader
from agent.ledger.file import connection, ledger_check, migrate
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from agent.ledger.tables import schema
from tests.ledger.values import NOW, lease

pytestmark = pytest.mark.only_sqlite

PRESENT = schema.REVISION
FOLLOWING = f"{int(PRESENT) + 1:04}"
NEXT = '''
"""Add a column and rebuild a table."""
import sqlalchemy as sa
from alembic import op

revision = "{following}"
down_revision = "{present}"
branch_labels = None
depends_on = None


def upgrade():
    op.add_column("events", sa.Column("note", sa.Text))
    with op.batch_alter_table("leases") as batch:
        batch.alter_column("spec_digest", existing_type=sa.Text, nullable=True)
    {last}
'''


def following(last: str = "") -> str:
    return NEXT.format(last=last, present=PRESENT, following=FOLLOWING)


def definitions(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as raw:
        rows = raw.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {name: "".join(sql.split()) for name, sql in rows if not name.startswith("sqlite_")}


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Pretend to be the next release, with one more migration."""
    folder = tmp_path / "migrations"
    shutil.copytree(str(importlib.resources.files("migrations")), folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / f"{FOLLOWING}_next.py").write_text(following())
    monkeypatch.setattr(importlib.resources, "files", lambda _: folder)
    monkeypatch.setattr(schema, "REVISION", FOLLOWING)
    yield folder
    monkeypatch.undo()


def test_all_migrations_lead_to_what_a_new_ledger_has_to_the_letter(path: Path, tmp_path: Path) -> None:
    path.touch()
    migrate.upgrade_to(path)
    engine = connection.engine(path, "ro")
    with engine.connect() as link:
        assert compare_metadata(MigrationContext.configure(link), schema.METADATA) == []
    engine.dispose()
    made = tmp_path / "made.sqlite"
    migrate.prepare(made)
    assert definitions(path) == definitions(made)
    assert migrate.stored_revision(path) == migrate.stored_revision(made) == schema.REVISION


def test_every_table_is_strict(path: Path) -> None:
    migrate.prepare(path)
    with closing(sqlite3.connect(path)) as raw:
        strict = {row[1]: row[5] for row in raw.execute("PRAGMA table_list")}
        assert {name: strict[name] for name in schema.METADATA.tables} == dict.fromkeys(schema.METADATA.tables, 1)
        with pytest.raises(sqlite3.IntegrityError, match="TEXT value in INTEGER"):
            raw.execute("INSERT INTO cooldowns VALUES ('host', 'h1', NULL, 'tomorrow', 'slow', 1)")


def test_the_revision_the_program_names_is_the_one_head() -> None:
    config = Config()
    config.set_main_option("script_location", str(importlib.resources.files("migrations")))
    assert ScriptDirectory.from_config(config).get_heads() == [schema.REVISION]


@pytest.mark.usefixtures("next_release")
async def test_an_older_ledger_is_copied_then_upgraded_with_all_it_holds(path: Path, clock: SteppedClock) -> None:
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(schema, "REVISION", PRESENT)
        path.touch()
        migrate.upgrade_to(path, PRESENT)
        old = await Ledger.open(path, clock=clock)
        async with old.transaction() as tx:
            tx.open_lease(lease())
        await old.close()
    with pytest.raises(LedgerError) as caught:
        await reader.open_reader(path)
    assert caught.value.code is Code.OLDER_SCHEMA
    new = await Ledger.open(path, clock=clock)
    assert (new.fleet_id, new.recollection(NOW).leases) == (old.fleet_id, (lease(),))
    await new.close()
    assert migrate.stored_revision(path) == FOLLOWING
    assert "STRICT" in definitions(path)["leases"]
    kept = path.with_name(path.name + f".schema-{PRESENT}.sqlite")
    assert migrate.stored_revision(kept) == PRESENT
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr(schema, "REVISION", PRESENT)
        assert ledger_check.verify(kept).counted["leases"] == 1


@pytest.mark.usefixtures("next_release")
def test_of_the_copies_that_upgrades_made_the_newest_two_stay(path: Path) -> None:
    old = {f"{path.name}.schema-{number:04}.sqlite": number for number in (1, 2, 3)}
    for name, number in old.items():
        path.with_name(name).write_text("older")
        os.utime(path.with_name(name), (number, number))
    foreign = path.with_name("other.sqlite.schema-0001.sqlite")
    foreign.write_text("another ledger's")
    path.touch()
    migrate.upgrade_to(path, PRESENT)
    migrate.prepare(path)
    copies = {file.name for file in path.parent.glob(f"{path.name}.schema-*")}
    assert copies == {f"{path.name}.schema-0003.sqlite", f"{path.name}.schema-{PRESENT}.sqlite"}
    assert foreign.exists()


@pytest.mark.usefixtures("next_release")
def test_a_restored_older_ledger_keeps_its_own_copy(path: Path) -> None:
    later = [path.with_name(f"{path.name}.schema-{number}.sqlite") for number in ("9997", "9998")]
    for place, file in enumerate(later):
        file.write_text("of a newer schema, made before")
        os.utime(file, (place, place))
    path.touch()
    migrate.upgrade_to(path, PRESENT)
    migrate.prepare(path)
    copies = {file.name for file in path.parent.glob(f"{path.name}.schema-*")}
    assert copies == {later[1].name, f"{path.name}.schema-{PRESENT}.sqlite"}


async def test_a_migration_that_fails_leaves_the_old_schema_whole(
    path: Path, clock: SteppedClock, next_release: Path
) -> None:
    path.touch()
    migrate.upgrade_to(path, PRESENT)
    before = definitions(path)
    step = next_release / "versions" / f"{FOLLOWING}_next.py"
    step.write_text(following('op.execute("CREATE TABLE events (again INTEGER)")'))
    with pytest.raises(LedgerError):
        await Ledger.open(path, clock=clock)
    assert definitions(path) == before
    assert migrate.stored_revision(path) == PRESENT
    step.write_text(following())
    await (await Ledger.open(path, clock=clock)).close()
    assert migrate.stored_revision(path) == FOLLOWING
