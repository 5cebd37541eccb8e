"""Write the dumps that are missing: `python -m tests.deploy.keep_ledgers` after a new migration.

Each is the dump before it, led one schema further; rows that only the newer schema has, a release's own ledger adds.
"""

import importlib.resources
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from agent.ledger import migrate, schema

FOLDER = Path(__file__).parent / "ledgers"


def earlier() -> list[str]:
    """Return every schema before the present one, the oldest first."""
    config = Config()
    config.set_main_option("script_location", str(importlib.resources.files("migrations")))
    return sorted({step.revision for step in ScriptDirectory.from_config(config).walk_revisions()} - {schema.REVISION})


def main() -> None:
    """Write them."""
    with tempfile.TemporaryDirectory() as folder:
        path, before = Path(folder) / "ledger.sqlite", ""
        for revision in earlier():
            file = FOLDER / f"{revision}.sql"
            if file.exists():
                path.unlink(missing_ok=True)
                with closing(sqlite3.connect(path)) as raw:
                    raw.executescript(file.read_text())
            else:
                migrate.upgrade_to(path, revision)
                head = (
                    f"-- A ledger of schema {revision}: that of {before}.sql, led there by the migrations and dumped.\n"
                )
                with closing(sqlite3.connect(path)) as raw:
                    file.write_text(head + "\n".join(raw.iterdump()) + "\n")
            before = revision


if __name__ == "__main__":
    main()
