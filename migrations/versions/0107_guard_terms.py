"""The terms that the guard of a lease was told at its rent."""

import sqlalchemy as sa
from alembic import op

revision = "0107"
down_revision = "0106"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("guard_terms", sa.Text))
