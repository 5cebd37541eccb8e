"""Leases keep when the bucket was found to have their paused disk's last checkpoint, and when that was taken."""

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0107"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("checkpoint_taken_at", sa.Integer))
    op.add_column("leases", sa.Column("checkpoint_verified_at", sa.Integer))
