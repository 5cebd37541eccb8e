"""The maintenance that the host of a lease announced."""

import sqlalchemy as sa
from alembic import op

revision = "0118"
down_revision = "0117"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("maintenance_told_at", sa.Integer))
    op.add_column("leases", sa.Column("maintenance_begins_at", sa.Integer))
    op.add_column("leases", sa.Column("maintenance_ends_at", sa.Integer))
