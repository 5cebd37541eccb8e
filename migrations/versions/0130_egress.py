"""What a gigabyte that leaves a lease's host costs, as its offer said."""

import sqlalchemy as sa
from alembic import op

revision = "0130"
down_revision = "0129"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("egress_micros_per_gb", sa.Integer, nullable=False, server_default=sa.text("0")))
