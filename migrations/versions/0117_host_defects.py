"""How a host failed the check of its guard, and by which script."""

import sqlalchemy as sa
from alembic import op

revision = "0117"
down_revision = "0116"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("host_checks", sa.Column("defect", sa.Text))
    op.add_column("host_checks", sa.Column("script", sa.Text))
