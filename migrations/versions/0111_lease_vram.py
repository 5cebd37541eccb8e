"""Leases keep the memory of one GPU that their offer promised."""

import sqlalchemy as sa
from alembic import op

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("vram_mb", sa.Integer))
