"""Registrations of public keys among the intents, and when a market last showed them on a lease.

The kinds of intents are checked by their table, so that it is made anew with its rows and indexes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0123"
down_revision = "0122"
branch_labels = None
depends_on = None

NAMES = "SELECT sql FROM sqlite_master WHERE type = '{}' AND tbl_name = 'intents' AND sql IS NOT NULL"


def upgrade() -> None:
    op.add_column("leases", sa.Column("keys_seen_at", sa.Integer))
    connection = op.get_bind()
    table = connection.exec_driver_sql(NAMES.format("table")).scalar_one()
    indexes = [row[0] for row in connection.exec_driver_sql(NAMES.format("index"))]
    connection.exec_driver_sql("ALTER TABLE intents RENAME TO intents_before")
    connection.exec_driver_sql(table.replace("'rebid', 'release'", "'rebid', 'register_key', 'release'"))
    connection.exec_driver_sql("INSERT INTO intents SELECT * FROM intents_before")
    connection.exec_driver_sql("DROP TABLE intents_before")
    for index in indexes:
        connection.exec_driver_sql(index)
