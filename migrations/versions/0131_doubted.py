"""Arrays that a person resumed, a kind of tally.

A check cannot be altered in SQLite, so the table is created again with every row. A server replaces the check.
"""

from alembic import op

revision = "0131"
down_revision = "0130"
branch_labels = None
depends_on = None

SCOPES = (
    "'avoided', 'cool_off', 'done', 'doubted', 'drain', 'failed_start', 'failed_task', 'fast_exit', 'fleet', "
    "'full', 'held', 'host', 'kill', 'lock', 'market', 'moved', 'offer', 'owner', 'pause', 'ran', 'rejected', "
    "'slot', 'stalled', 'started', 'starts', 'storm', 'taken_back', 'underbid', 'untaken', 'crossed'"
)
TABLE = f"""
CREATE TABLE cooldowns (
    scope TEXT NOT NULL,
    "key" TEXT NOT NULL,
    since INTEGER,
    until INTEGER,
    code TEXT NOT NULL,
    count INTEGER NOT NULL,
    CONSTRAINT pk_cooldowns PRIMARY KEY (scope, "key"),
    CONSTRAINT ck_cooldowns_count CHECK (count >= 0),
    CONSTRAINT ck_cooldowns_scope CHECK (scope IN ({SCOPES})),
    CONSTRAINT ck_cooldowns_time CHECK (since IS NOT NULL OR until IS NOT NULL)
)
 WITHOUT ROWID,
 STRICT
"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        op.drop_constraint(op.f("ck_cooldowns_scope"), "cooldowns", type_="check")
        op.create_check_constraint(op.f("ck_cooldowns_scope"), "cooldowns", f"scope IN ({SCOPES})")
        return
    op.execute("CREATE TABLE kept_cooldowns AS SELECT * FROM cooldowns")
    op.execute("DROP TABLE cooldowns")
    op.execute(TABLE)
    columns = 'scope, "key", since, until, code, count'
    op.execute(f"INSERT INTO cooldowns ({columns}) SELECT {columns} FROM kept_cooldowns")  # noqa: S608 - no input
    op.execute("DROP TABLE kept_cooldowns")
    op.execute("CREATE INDEX ix_cooldowns_until ON cooldowns (until)")
