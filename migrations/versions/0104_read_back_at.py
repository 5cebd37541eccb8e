"""Leases keep when a listing first showed them on the terms of their order."""

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("read_back_at", sa.Integer))
