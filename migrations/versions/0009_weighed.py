"""Of each host, the interruptible hours weighed by their age; those of before as if of stays of a few hours.

Nobody wrote down how long the stays of before were: each hour counts 0.4394, the mean over the first four of a stay.
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE hosts RENAME TO hosts_before",
    """
    CREATE TABLE hosts (
        market TEXT NOT NULL,
        host_id TEXT NOT NULL,
        owner_id TEXT NOT NULL,
        running_seconds REAL NOT NULL,
        interruptions REAL NOT NULL,
        starts_ok REAL NOT NULL,
        starts_failed REAL NOT NULL,
        updated_at INTEGER,
        market_losses REAL NOT NULL,
        bid_seconds REAL NOT NULL,
        loaded_gb REAL NOT NULL,
        loading_seconds REAL NOT NULL,
        displaced REAL NOT NULL,
        outbids TEXT NOT NULL,
        weighed_hours REAL NOT NULL,
        CONSTRAINT pk_hosts PRIMARY KEY (market, host_id),
        CONSTRAINT ck_hosts_running_seconds CHECK (running_seconds >= 0),
        CONSTRAINT ck_hosts_interruptions CHECK (interruptions >= 0),
        CONSTRAINT ck_hosts_starts_ok CHECK (starts_ok >= 0),
        CONSTRAINT ck_hosts_starts_failed CHECK (starts_failed >= 0),
        CONSTRAINT ck_hosts_market_losses CHECK (market_losses >= 0),
        CONSTRAINT ck_hosts_bid_seconds CHECK (bid_seconds >= 0),
        CONSTRAINT ck_hosts_loaded_gb CHECK (loaded_gb >= 0),
        CONSTRAINT ck_hosts_loading_seconds CHECK (loading_seconds >= 0),
        CONSTRAINT ck_hosts_displaced CHECK (displaced >= 0),
        CONSTRAINT ck_hosts_weighed_hours CHECK (weighed_hours >= 0)
    ) WITHOUT ROWID, STRICT
    """,
    """
    INSERT INTO hosts
    SELECT market, host_id, owner_id, running_seconds, interruptions, starts_ok, starts_failed, updated_at,
        market_losses, bid_seconds, loaded_gb, loading_seconds, displaced, outbids, bid_seconds / 3600.0 * 0.4394
    FROM hosts_before
    """,
    "DROP TABLE hosts_before",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
