"""The GPUs that a check saw on its host, and the terms that the guard of a rent is told."""

import sqlalchemy as sa
from alembic import op

revision = "0114"
down_revision = "0113"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("host_checks", sa.Column("seen_gpus", sa.Integer))
    op.add_column("host_checks", sa.Column("seen_gpu", sa.Text))
    op.add_column("intents", sa.Column("guard_terms", sa.Text))
