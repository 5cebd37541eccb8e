"""The agreed rate of each lease, and a listed rate that is not believed yet; older leases agreed to their rate."""

from alembic import op

revision = "0012"
down_revision = "0009"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE leases ADD COLUMN agreed_rate INTEGER",
    "ALTER TABLE leases ADD COLUMN doubted_rate INTEGER",
    "ALTER TABLE leases ADD COLUMN doubted_since INTEGER",
    "ALTER TABLE leases ADD COLUMN doubted_listings INTEGER DEFAULT 0 NOT NULL",
    "UPDATE leases SET agreed_rate = gpu_rate",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
