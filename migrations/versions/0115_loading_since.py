"""The time from which the first start of a lease has loaded, later by the silences of its host."""

import sqlalchemy as sa
from alembic import op

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("loading_since", sa.Integer))
