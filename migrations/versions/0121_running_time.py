"""The running time of each lease since it first was ready. What the ledger has of earlier leases counts."""

import sqlalchemy as sa
from alembic import op

revision = "0121"
down_revision = "0120"
branch_labels = None
depends_on = None

RAN = (
    "UPDATE leases SET ran_micros = coalesce("
    "(SELECT sum(useful + lost) FROM phases WHERE phases.lease_id = leases.lease_id), 0)"
)


def upgrade() -> None:
    op.add_column("leases", sa.Column("ran_micros", sa.Integer, nullable=False, server_default=sa.text("0")))
    op.execute(RAN)
