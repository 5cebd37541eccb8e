"""When each lease's instance was shown to be ours, since when its label is another, and who said that it is ours.

What was rented before is proven by the first listing and look that show our label; until then nothing is written to it.
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in ("proven_at", "estranged_since", "vouched_at"):
        op.execute(f"ALTER TABLE leases ADD COLUMN {column} INTEGER")
