"""The last confirmed sign of life in each bucket's folder."""

from alembic import op

revision = "0113"
down_revision = "0112"
branch_labels = None
depends_on = None

SIGNS = """
CREATE TABLE signs_of_life (
    endpoint TEXT NOT NULL,
    bucket TEXT NOT NULL,
    prefix TEXT NOT NULL,
    folder TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    written_at INTEGER,
    absent_until INTEGER,
    CONSTRAINT pk_signs_of_life PRIMARY KEY (endpoint, bucket, prefix, folder)
) WITHOUT ROWID, STRICT
"""


def upgrade() -> None:
    op.execute(SIGNS)
