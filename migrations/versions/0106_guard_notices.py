"""The notices before losses to a market, as guards measured them."""

from alembic import op

revision = "0106"
down_revision = "0105"
branch_labels = None
depends_on = None

NOTICES = """
CREATE TABLE guard_notices (
    lease_id TEXT NOT NULL,
    lost_at INTEGER NOT NULL,
    market TEXT NOT NULL,
    sigterm_seen INTEGER NOT NULL,
    seconds REAL NOT NULL,
    told_at INTEGER NOT NULL,
    CONSTRAINT pk_guard_notices PRIMARY KEY (lease_id, lost_at),
    CONSTRAINT ck_guard_notices_sigterm_seen CHECK (sigterm_seen IN (0, 1)),
    CONSTRAINT ck_guard_notices_seconds CHECK (seconds >= 0)
) WITHOUT ROWID, STRICT
"""


def upgrade() -> None:
    op.execute(NOTICES)
