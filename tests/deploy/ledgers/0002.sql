-- A ledger of schema 0002: the one before, led there by the migrations; what it has more.
CREATE TABLE progress (
        workload TEXT NOT NULL,
        hours REAL NOT NULL,
        told_at INTEGER NOT NULL,
        since INTEGER NOT NULL,
        source TEXT NOT NULL,
        lease_id TEXT NOT NULL,
        CONSTRAINT pk_progress PRIMARY KEY (workload),
        CONSTRAINT ck_progress_hours CHECK (hours >= 0)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE speeds (
        workload TEXT NOT NULL,
        gpu TEXT NOT NULL,
        hours REAL NOT NULL,
        running_hours REAL NOT NULL,
        CONSTRAINT pk_speeds PRIMARY KEY (workload, gpu),
        CONSTRAINT ck_speeds_hours CHECK (hours >= 0),
        CONSTRAINT ck_speeds_running_hours CHECK (running_hours >= 0)
    ) WITHOUT ROWID, STRICT
    ;
DELETE FROM alembic_version;
INSERT INTO alembic_version VALUES('0002');
