"""What every search of offers showed: the slices of each look, and what is known of each slice besides its prices."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE looks (
        market TEXT NOT NULL,
        at INTEGER NOT NULL,
        slices TEXT NOT NULL,
        CONSTRAINT pk_looks PRIMARY KEY (market, at)
    ) WITHOUT ROWID, STRICT
    """,
    """
    CREATE TABLE slices (
        market TEXT NOT NULL,
        host_id TEXT NOT NULL,
        gpus INTEGER NOT NULL,
        seen_at INTEGER NOT NULL,
        facts TEXT NOT NULL,
        CONSTRAINT pk_slices PRIMARY KEY (market, host_id, gpus)
    ) WITHOUT ROWID, STRICT
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
