"""Leases keep the terms that their guard was given at the rent."""

import sqlalchemy as sa
from alembic import op

revision = "0107"
down_revision = "0106"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("guard_terms", sa.Text))
