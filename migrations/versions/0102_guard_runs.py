"""The runs of slots with a guard, and the run of each rent and lease."""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None

RUNS = """
CREATE TABLE guard_runs (
    workload TEXT NOT NULL,
    slot INTEGER NOT NULL,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    spec_digest TEXT NOT NULL,
    begun_at INTEGER NOT NULL,
    CONSTRAINT pk_guard_runs PRIMARY KEY (workload, slot, run)
) WITHOUT ROWID, STRICT
"""


def upgrade() -> None:
    op.add_column("leases", sa.Column("guard_run", sa.Integer))
    op.add_column("intents", sa.Column("guard_run", sa.Integer))
    op.execute(RUNS)
