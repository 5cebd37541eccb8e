"""Of each host, how many losses were to on-demand renters, and by how much rivals outbid us; both begin at nothing."""

from alembic import op

revision = "0008"
down_revision = "0007"
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
        CONSTRAINT pk_hosts PRIMARY KEY (market, host_id),
        CONSTRAINT ck_hosts_running_seconds CHECK (running_seconds >= 0),
        CONSTRAINT ck_hosts_interruptions CHECK (interruptions >= 0),
        CONSTRAINT ck_hosts_starts_ok CHECK (starts_ok >= 0),
        CONSTRAINT ck_hosts_starts_failed CHECK (starts_failed >= 0),
        CONSTRAINT ck_hosts_market_losses CHECK (market_losses >= 0),
        CONSTRAINT ck_hosts_bid_seconds CHECK (bid_seconds >= 0),
        CONSTRAINT ck_hosts_loaded_gb CHECK (loaded_gb >= 0),
        CONSTRAINT ck_hosts_loading_seconds CHECK (loading_seconds >= 0),
        CONSTRAINT ck_hosts_displaced CHECK (displaced >= 0)
    ) WITHOUT ROWID, STRICT
    """,
    """
    INSERT INTO hosts
    SELECT market, host_id, owner_id, running_seconds, interruptions, starts_ok, starts_failed, updated_at,
        market_losses, bid_seconds, loaded_gb, loading_seconds, 0.0, '{"steps": []}'
    FROM hosts_before
    """,
    "DROP TABLE hosts_before",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
