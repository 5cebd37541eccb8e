"""The links and the clocks of a host's GPUs in the check of its guard."""

import sqlalchemy as sa
from alembic import op

revision = "0120"
down_revision = "0119"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("host_checks", sa.Column("pcie_generation", sa.Integer))
    op.add_column("host_checks", sa.Column("pcie_width", sa.Integer))
    op.add_column("host_checks", sa.Column("pcie_share", sa.REAL))
    op.add_column("host_checks", sa.Column("clock_events", sa.Integer))
