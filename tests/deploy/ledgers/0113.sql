-- A ledger of schema 0113: the one before, led there by the migrations; what it has more.
CREATE TABLE signs_of_life (
    endpoint TEXT NOT NULL,
    bucket TEXT NOT NULL,
    prefix TEXT NOT NULL,
    folder TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    written_at INTEGER,
    absent_until INTEGER,
    CONSTRAINT pk_signs_of_life PRIMARY KEY (endpoint, bucket, prefix, folder)
) WITHOUT ROWID, STRICT
;
DELETE FROM alembic_version;
INSERT INTO alembic_version VALUES('0113');
