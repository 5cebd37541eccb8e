"""The ledger of the first release; its statements are in the SQL file of the same name."""

from pathlib import Path

from alembic import op

revision = "0100"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    text = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    for statement in text.split(";\n"):
        if statement.strip():
            op.execute(statement)
