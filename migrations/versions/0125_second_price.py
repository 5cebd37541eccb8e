"""Limits where the price paid is not the bid, and the time at which a market has said that it ends a lease."""

import sqlalchemy as sa
from alembic import op

revision = "0125"
down_revision = "0124"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("bid_limit", sa.Integer))
    op.add_column("leases", sa.Column("notice_at", sa.Integer))
