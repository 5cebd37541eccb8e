"""Progress keeps the guard's number in the work's own unit."""

import sqlalchemy as sa
from alembic import op

revision = "0112"
down_revision = "0111"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("progress", sa.Column("number", sa.REAL))
