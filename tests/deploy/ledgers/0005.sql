-- A ledger of schema 0005: the one before, led there by the migrations; what it has more.
CREATE TABLE shadow_decisions (
        decision_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        workload TEXT NOT NULL,
        strategy TEXT NOT NULL,
        kind TEXT NOT NULL,
        code TEXT NOT NULL,
        sentence TEXT NOT NULL,
        host_id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        CONSTRAINT ck_shadow_decisions_slot CHECK (slot >= 0)
    ) STRICT
    ;
CREATE TABLE shadows (
        workload TEXT NOT NULL,
        strategy TEXT NOT NULL,
        since INTEGER NOT NULL,
        seen_at INTEGER NOT NULL,
        spent INTEGER NOT NULL,
        live_spent INTEGER NOT NULL,
        paid INTEGER NOT NULL,
        useful INTEGER NOT NULL,
        lost INTEGER NOT NULL,
        live_paid INTEGER NOT NULL,
        live_useful INTEGER NOT NULL,
        live_lost INTEGER NOT NULL,
        interruptions INTEGER NOT NULL,
        starts INTEGER NOT NULL,
        rents INTEGER NOT NULL,
        position BLOB NOT NULL,
        CONSTRAINT pk_shadows PRIMARY KEY (workload, strategy),
        CONSTRAINT ck_shadows_spent CHECK (spent >= 0),
        CONSTRAINT ck_shadows_live_spent CHECK (live_spent >= 0),
        CONSTRAINT ck_shadows_paid CHECK (paid >= 0),
        CONSTRAINT ck_shadows_useful CHECK (useful >= 0),
        CONSTRAINT ck_shadows_lost CHECK (lost >= 0),
        CONSTRAINT ck_shadows_live_paid CHECK (live_paid >= 0),
        CONSTRAINT ck_shadows_live_useful CHECK (live_useful >= 0),
        CONSTRAINT ck_shadows_live_lost CHECK (live_lost >= 0),
        CONSTRAINT ck_shadows_interruptions CHECK (interruptions >= 0),
        CONSTRAINT ck_shadows_starts CHECK (starts >= 0),
        CONSTRAINT ck_shadows_rents CHECK (rents >= 0)
    ) WITHOUT ROWID, STRICT
    ;
CREATE INDEX ix_shadow_decisions_shadow ON shadow_decisions (workload, strategy, decision_id);
DELETE FROM alembic_version;
INSERT INTO alembic_version VALUES('0005');
