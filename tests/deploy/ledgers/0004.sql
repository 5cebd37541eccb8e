-- A ledger of schema 0004: the one before, led there by the migrations; what it has more.
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
    ;
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
    ;
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
    ;
INSERT INTO "phases" VALUES('vast-55030930','2026-07-27','interruptible',10792011265,0,0,9900000000,892011265,0);
INSERT INTO "phases" VALUES('vast-55030961','2026-07-27','interruptible',339014128,0,0,0,339014128,0);
INSERT INTO "phases" VALUES('vast-55031023','2026-07-27','interruptible',44277856397,0,0,44100000000,177856397,0);
INSERT INTO "phases" VALUES('vast-55031126','2026-07-27','interruptible',2411658802,0,0,1800000000,611658802,0);
INSERT INTO "phases" VALUES('vast-55031128','2026-07-27','interruptible',25803391215,0,0,25803391215,0,0);
DELETE FROM alembic_version;
INSERT INTO alembic_version VALUES('0004');
