-- A ledger of schema 0007: the one before, led there by the migrations; what it has more.
CREATE TABLE looks (
        market TEXT NOT NULL,
        at INTEGER NOT NULL,
        slices TEXT NOT NULL,
        CONSTRAINT pk_looks PRIMARY KEY (market, at)
    ) WITHOUT ROWID, STRICT
    ;
CREATE TABLE slices (
        market TEXT NOT NULL,
        host_id TEXT NOT NULL,
        gpus INTEGER NOT NULL,
        seen_at INTEGER NOT NULL,
        facts TEXT NOT NULL,
        CONSTRAINT pk_slices PRIMARY KEY (market, host_id, gpus)
    ) WITHOUT ROWID, STRICT
    ;
DELETE FROM alembic_version;
INSERT INTO alembic_version VALUES('0007');
