"""The model and the number of the GPUs that a rent ordered."""

import sqlalchemy as sa
from alembic import op

revision = "0127"
down_revision = "0126"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("intents", sa.Column("gpu", sa.Text))
    op.add_column("intents", sa.Column("gpus", sa.Integer))
