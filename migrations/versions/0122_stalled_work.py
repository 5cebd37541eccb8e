"""Stalled work: since when a lease's work shows no progress, and the measures that were taken, a kind of tally.

Failed tasks of arrays are another kind. A check cannot be altered, so the table is created again with every row.
"""

import sqlalchemy as sa
from alembic import op

revision = "0122"
down_revision = "0121"
branch_labels = None
depends_on = None

TABLE = """
CREATE TABLE cooldowns (
    scope TEXT NOT NULL,
    "key" TEXT NOT NULL,
    since INTEGER,
    until INTEGER,
    code TEXT NOT NULL,
    count INTEGER NOT NULL,
    CONSTRAINT pk_cooldowns PRIMARY KEY (scope, "key"),
    CONSTRAINT ck_cooldowns_count CHECK (count >= 0),
    CONSTRAINT ck_cooldowns_scope CHECK (scope IN ('cool_off', 'done', 'drain', 'failed_start', 'failed_task', 'fast_exit', 'fleet', 'full', 'held', 'host', 'kill', 'lock', 'market', 'moved', 'offer', 'owner', 'pause', 'ran', 'rejected', 'slot', 'stalled', 'started', 'starts', 'storm', 'underbid', 'untaken', 'crossed')),
    CONSTRAINT ck_cooldowns_time CHECK (since IS NOT NULL OR until IS NOT NULL)
)
 WITHOUT ROWID,
 STRICT
"""  # noqa: E501 - as the first schema has it


def upgrade() -> None:
    op.add_column("leases", sa.Column("stalled_since", sa.Integer))
    op.add_column("leases", sa.Column("stalled_at", sa.Integer))
    op.execute("CREATE TABLE kept_cooldowns AS SELECT * FROM cooldowns")
    op.execute("DROP TABLE cooldowns")
    op.execute(TABLE)
    columns = 'scope, "key", since, until, code, count'
    op.execute(f"INSERT INTO cooldowns ({columns}) SELECT {columns} FROM kept_cooldowns")  # noqa: S608 - no input
    op.execute("DROP TABLE kept_cooldowns")
    op.execute("CREATE INDEX ix_cooldowns_until ON cooldowns (until)")
