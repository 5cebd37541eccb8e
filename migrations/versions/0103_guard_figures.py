"""Guards' figures by lease; and whether a guard measured the work that an interruption wasted."""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None

FIGURES = """
CREATE TABLE guard_figures (
    lease_id TEXT NOT NULL,
    workload TEXT NOT NULL,
    slot INTEGER NOT NULL,
    market TEXT NOT NULL,
    host_id TEXT NOT NULL,
    run INTEGER NOT NULL,
    stretch INTEGER NOT NULL,
    told_at INTEGER NOT NULL,
    progress REAL,
    manifest TEXT NOT NULL,
    kept_at INTEGER,
    checkpoint_bytes INTEGER,
    took_seconds REAL,
    upload_seconds REAL,
    restore_seconds REAL,
    CONSTRAINT pk_guard_figures PRIMARY KEY (lease_id),
    CONSTRAINT ck_guard_figures_slot CHECK (slot >= 0),
    CONSTRAINT ck_guard_figures_run CHECK (run >= 0),
    CONSTRAINT ck_guard_figures_stretch CHECK (stretch >= 0),
    CONSTRAINT ck_guard_figures_checkpoint_bytes CHECK (checkpoint_bytes >= 0),
    CONSTRAINT ck_guard_figures_took_seconds CHECK (took_seconds >= 0),
    CONSTRAINT ck_guard_figures_upload_seconds CHECK (upload_seconds >= 0),
    CONSTRAINT ck_guard_figures_restore_seconds CHECK (restore_seconds >= 0)
) WITHOUT ROWID, STRICT
"""


def upgrade() -> None:
    op.add_column("losses", sa.Column("is_measured", sa.Integer))
    op.execute(FIGURES)
