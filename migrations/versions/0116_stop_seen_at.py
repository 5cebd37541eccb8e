"""When a stop that waits to be judged was first listed."""

import sqlalchemy as sa
from alembic import op

revision = "0116"
down_revision = "0115"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("stop_seen_at", sa.Integer))
