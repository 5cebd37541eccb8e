-- A ledger of schema 0110: the one before, led there by the migrations; what it has more.
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
;
DELETE FROM alembic_version;
INSERT INTO alembic_version VALUES('0110');
