"""Leases keep when their agreed rate was last listed, while another rate is doubted."""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("agreed_until", sa.Integer))
