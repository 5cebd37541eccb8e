"""Leases keep when their guard was asked for a last checkpoint before an ending of our own."""

import sqlalchemy as sa
from alembic import op

revision = "0105"
down_revision = "0104"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("checkpoint_asked_at", sa.Integer))
