-- A ledger of schema 0003: the one before, led there by the migrations; what it has more.
CREATE INDEX ix_events_lease_id_at ON events (lease_id, at);
CREATE INDEX ix_intents_lease_id ON intents (lease_id);
DELETE FROM alembic_version;
INSERT INTO alembic_version VALUES('0003');
