"""The checks of leases' hosts by their guards."""

from alembic import op

revision = "0110"
down_revision = "0109"
branch_labels = None
depends_on = None

CHECKS = """
CREATE TABLE host_checks (
    lease_id TEXT NOT NULL,
    market TEXT NOT NULL,
    host_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    gpu TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    dlperf REAL NOT NULL,
    checked_at INTEGER NOT NULL,
    matmul_tflops REAL,
    copy_to_gpu_gbps REAL,
    copy_from_gpu_gbps REAL,
    disk_write_mbps REAL,
    power_share REAL,
    CONSTRAINT pk_host_checks PRIMARY KEY (lease_id),
    CONSTRAINT ck_host_checks_gpus CHECK (gpus >= 0),
    CONSTRAINT ck_host_checks_dlperf CHECK (dlperf >= 0)
) WITHOUT ROWID, STRICT
"""


def upgrade() -> None:
    op.execute(CHECKS)
