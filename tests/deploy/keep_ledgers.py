"""Write the missing kept ledgers: `python -m tests.deploy.keep_ledgers` after a new migration.

Each is the ledger of the schema before it, led one schema further; rows that only the newer schema has, a release's own
ledger adds. What it adds to that one is kept, as it was then, or the whole of it where it changes or drops anything: so
that a migration that is edited later no longer leads the older ledgers to where releases have led theirs, and is found.
"""

import importlib.resources
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from agent.ledger.file import migrate
from agent.ledger.tables import schema

FOLDER = Path(__file__).parent / "ledgers"
WHOLE = "BEGIN TRANSACTION;"
"""A line of the dump of a whole ledger, and of no other file."""


def earlier() -> list[str]:
    """Return every schema before the present one, the oldest first."""
    config = Config()
    config.set_main_option("script_location", str(importlib.resources.files("migrations")))
    return sorted({step.revision for step in ScriptDirectory.from_config(config).walk_revisions()} - {schema.REVISION})


def script(revision: str) -> str:
    """Return the SQL that makes the ledger of a schema."""
    text = (FOLDER / f"{revision}.sql").read_text()
    if WHOLE in text:
        return text
    before = max(file.stem for file in FOLDER.glob("*.sql") if file.stem < revision)
    return script(before) + text


def make(revision: str, path: Path) -> None:
    """Make the ledger of a schema."""
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(script(revision))


def statements(path: Path) -> list[str]:
    """Return the dump of a ledger, but for the name of its schema."""
    with closing(sqlite3.connect(path)) as raw:
        return [each for each in raw.iterdump() if not each.startswith('INSERT INTO "alembic_version"')]


def step(revision: str, before: Sequence[str], after: Sequence[str]) -> str:
    """Return the kept text of a ledger that was migrated to a schema, from its dumps before and after."""
    head = f"-- A ledger of schema {revision}: the one before, led there by the migrations; "
    if set(before) <= set(after):
        added = [each for each in after if each not in set(before)]
        kept = [f"{head}what it has more.", *added, "DELETE FROM alembic_version;"]
    else:
        kept = [f"{head}all of it, as something was changed or dropped.", *after]
    return "\n".join([*kept, f"INSERT INTO alembic_version VALUES('{revision}');"]) + "\n"


def main() -> None:
    """Write them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        FOLDER.mkdir(exist_ok=True)
        for revision in earlier():
            file = FOLDER / f"{revision}.sql"
            if file.exists():
                path.unlink(missing_ok=True)
                make(revision, path)
                continue
            before = statements(path)
            migrate.upgrade_to(path, revision)
            file.write_text(step(revision, before, statements(path)))


if __name__ == "__main__":
    main()
