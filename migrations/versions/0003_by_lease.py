"""Find the events and intents of one lease without reading them all: a page asks for a lease's whole story."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATEMENTS = (
    "CREATE INDEX ix_events_lease_id_at ON events (lease_id, at)",
    "CREATE INDEX ix_intents_lease_id ON intents (lease_id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
