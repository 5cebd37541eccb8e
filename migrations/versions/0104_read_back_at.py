"""A lease knows when a listing had shown it on the terms of its order."""

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("read_back_at", sa.Integer))
