"""Instances that go on with another slot: the rent of a lease's label, and their orders among the intents.

The kinds of intents are checked by their table, so that it is made anew with its rows and indexes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0124"
down_revision = "0123"
branch_labels = None
depends_on = None

NAMES = "SELECT sql FROM sqlite_master WHERE type = '{}' AND tbl_name = 'intents' AND sql IS NOT NULL"


def upgrade() -> None:
    op.add_column("leases", sa.Column("label_intent_id", sa.Text, nullable=False, server_default=""))
    connection = op.get_bind()
    table = connection.exec_driver_sql(NAMES.format("table")).scalar_one()
    indexes = [row[0] for row in connection.exec_driver_sql(NAMES.format("index"))]
    connection.exec_driver_sql("ALTER TABLE intents RENAME TO intents_before")
    connection.exec_driver_sql(table.replace("'pause', 'rebid'", "'pause', 'reassign', 'rebid'"))
    connection.exec_driver_sql("INSERT INTO intents SELECT * FROM intents_before")
    connection.exec_driver_sql("DROP TABLE intents_before")
    for index in indexes:
        connection.exec_driver_sql(index)
