"""Paid time by phase, what each interruption took, and the ledger's own estimate beside what the market charged.

Of what was counted before, useful time is known by stretch and the rest by nothing: what an open lease runs now is
taken for useful, all else that was paid and not useful for lost, since restoring was never told apart from it.
"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE phases (
        lease_id TEXT NOT NULL,
        day TEXT NOT NULL,
        tenure TEXT NOT NULL,
        paid INTEGER NOT NULL,
        loading INTEGER NOT NULL,
        restoring INTEGER NOT NULL,
        useful INTEGER NOT NULL,
        lost INTEGER NOT NULL,
        paused_disk INTEGER NOT NULL,
        CONSTRAINT pk_phases PRIMARY KEY (lease_id, day, tenure),
        CONSTRAINT ck_phases_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
        CONSTRAINT ck_phases_paid CHECK (paid >= 0),
        CONSTRAINT ck_phases_loading CHECK (loading >= 0),
        CONSTRAINT ck_phases_restoring CHECK (restoring >= 0),
        CONSTRAINT ck_phases_useful CHECK (useful >= 0),
        CONSTRAINT ck_phases_lost CHECK (lost >= 0),
        CONSTRAINT ck_phases_paused_disk CHECK (paused_disk >= 0),
        CONSTRAINT ck_phases_parts CHECK (paid = loading + restoring + useful + lost)
    ) WITHOUT ROWID, STRICT
    """,
    """
    CREATE TABLE losses (
        lease_id TEXT NOT NULL,
        at INTEGER NOT NULL,
        cause TEXT NOT NULL,
        lost INTEGER NOT NULL,
        CONSTRAINT pk_losses PRIMARY KEY (lease_id, at),
        CONSTRAINT ck_losses_cause CHECK (cause IN ('container_exit', 'contract_end', 'displaced', 'external_stop',
            'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
        CONSTRAINT ck_losses_lost CHECK (lost >= 0)
    ) WITHOUT ROWID, STRICT
    """,
    """
    CREATE TABLE bills (
        market TEXT NOT NULL,
        day TEXT NOT NULL,
        instance_id TEXT NOT NULL,
        lease_id TEXT NOT NULL,
        estimate INTEGER NOT NULL,
        estimated_at INTEGER NOT NULL,
        charged INTEGER,
        charged_at INTEGER,
        CONSTRAINT pk_bills PRIMARY KEY (market, day, instance_id),
        CONSTRAINT ck_bills_estimate CHECK (estimate >= 0)
    ) WITHOUT ROWID, STRICT
    """,
    """
    INSERT INTO phases (lease_id, day, tenure, paid, loading, restoring, useful, lost, paused_disk)
    WITH counted AS (
        SELECT spend.lease_id, spend.day, spend.tenure,
            CAST(round(running_seconds * 1e6) AS INTEGER) AS paid,
            CAST(round(useful_seconds * 1e6) AS INTEGER) AS told,
            leases.run_since IS NOT NULL AND leases.state <> 'ended'
                AND spend.day >= date(leases.run_since / 1000000, 'unixepoch') AS runs
        FROM spend JOIN leases USING (lease_id)
    ), split AS (
        SELECT *, CASE WHEN runs THEN paid ELSE min(told, paid) END AS useful FROM counted
    )
    SELECT lease_id, day, tenure, paid, 0, 0, useful, paid - useful, 0 FROM split WHERE paid > 0
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
