"""The liveness of a service that was ready, and the restarts of its lease."""

import sqlalchemy as sa
from alembic import op

revision = "0119"
down_revision = "0118"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("failed_probes", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("leases", sa.Column("restarts", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.add_column("leases", sa.Column("probe_failed_at", sa.Integer))
    op.add_column("leases", sa.Column("unhealthy_since", sa.Integer))
    op.add_column("leases", sa.Column("restart_at", sa.Integer))
