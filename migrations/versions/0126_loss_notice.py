"""When a market had said, before a loss, that it ends the lease."""

import sqlalchemy as sa
from alembic import op

revision = "0126"
down_revision = "0125"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("events", sa.Column("notice_at", sa.Integer))
