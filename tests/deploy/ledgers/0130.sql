-- A ledger of schema 0130: the one before, led there by the migrations; all of it, as something was changed or dropped.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
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
)
 WITHOUT ROWID,
 STRICT;
CREATE TABLE capacity (
    market TEXT NOT NULL,
    pool TEXT NOT NULL,
    is_there INTEGER NOT NULL,
    is_begun INTEGER NOT NULL,
    since INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    price INTEGER,
    version TEXT NOT NULL,
    evidence TEXT NOT NULL,
    there TEXT NOT NULL,
    away TEXT NOT NULL,
    looks INTEGER NOT NULL,
    CONSTRAINT pk_capacity PRIMARY KEY (market, pool),
    CONSTRAINT ck_capacity_is_there CHECK (is_there IN (0, 1)),
    CONSTRAINT ck_capacity_is_begun CHECK (is_begun IN (0, 1)),
    CONSTRAINT ck_capacity_price CHECK (price >= 0),
    CONSTRAINT ck_capacity_looks CHECK (looks >= 0)
)
 WITHOUT ROWID,
 STRICT;
INSERT INTO "capacity" VALUES('vast','RTX 4090 x1 up to $0.4500/h #5d2a8b',1,1,1785114769000000,1785115793000000,121334,'102feeea415d','[-15.294036061539419, -14.603834734705343, -13.913737960994544, -13.223850260590869, -14.90900584445626, -14.21880451762219, -13.528707743911388, -12.838820043507711, -14.829248054565506, -14.139046727731433, -13.44894995402063, -12.759062253616957, -15.360033686067926, -14.669832359233855, -13.979735585523054, -13.289847885119377]','{"ends": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "hours": [0.16666666666666666, 0.11777777777777779, 0.0, 0.0, 0.0, 0.0, 0.0]}','{"ends": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "hours": [0.0002777777777777778, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]}',41);
CREATE TABLE cooldowns (
    scope TEXT NOT NULL,
    "key" TEXT NOT NULL,
    since INTEGER,
    until INTEGER,
    code TEXT NOT NULL,
    count INTEGER NOT NULL,
    CONSTRAINT pk_cooldowns PRIMARY KEY (scope, "key"),
    CONSTRAINT ck_cooldowns_count CHECK (count >= 0),
    CONSTRAINT ck_cooldowns_scope CHECK (scope IN ('avoided', 'cool_off', 'done', 'drain', 'failed_start', 'failed_task', 'fast_exit', 'fleet', 'full', 'held', 'host', 'kill', 'lock', 'market', 'moved', 'offer', 'owner', 'pause', 'ran', 'rejected', 'slot', 'stalled', 'started', 'starts', 'storm', 'taken_back', 'underbid', 'untaken', 'crossed')),
    CONSTRAINT ck_cooldowns_time CHECK (since IS NOT NULL OR until IS NOT NULL)
)
 WITHOUT ROWID,
 STRICT
;
INSERT INTO "cooldowns" VALUES('host','vast/71430',NULL,1785116631000000,'we left it a moment ago',1);
INSERT INTO "cooldowns" VALUES('ran','train/0@vast-48447433',1785110462000000,1785196862000000,'a start on host 71430',1);
INSERT INTO "cooldowns" VALUES('ran','train/0@vast-48447462',1785114831000000,1785201231000000,'a start on host 17526',1);
INSERT INTO "cooldowns" VALUES('slot','train/0',NULL,1785114829000000,'a rent a moment ago',1);
CREATE TABLE decisions (
    decision_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    workload TEXT NOT NULL,
    slot INTEGER NOT NULL,
    kind TEXT NOT NULL,
    code TEXT NOT NULL,
    sentence TEXT NOT NULL,
    limit_name TEXT NOT NULL,
    options TEXT NOT NULL,
    lease_id TEXT NOT NULL,
    offer_id TEXT NOT NULL,
    bid INTEGER,
    rate INTEGER,
    strategy TEXT NOT NULL,
    strategy_file TEXT NOT NULL,
    params_digest TEXT NOT NULL,
    CONSTRAINT ck_decisions_slot CHECK (slot >= 0),
    CONSTRAINT ck_decisions_bid CHECK (bid >= 0),
    CONSTRAINT ck_decisions_rate CHECK (rate >= 0)
)
 STRICT;
INSERT INTO "decisions" VALUES(1,1785110400000000,'train',0,'rent','best_offer','rent 1x RTX 4090 on host 71430 at $0.1214/h bid over a floor of $0.1213/h: 745 DLPerf h/$, 0.137 $ per useful hour','','[{"dollars": 0.13705227466166542, "name": "chosen", "terms": [{"figure": 1.7339214506073848, "name": "gpu", "unit": "$"}, {"figure": 0.12706844532695494, "name": "disk", "unit": "$"}, {"figure": 0.07938777777777778, "name": "traffic", "unit": "$"}, {"figure": 0.005538442650161459, "name": "idle while loading", "unit": "$"}, {"figure": 0.01230765033369213, "name": "loading", "unit": "h"}, {"figure": 0.016666666666666666, "name": "restore", "unit": "h"}, {"figure": 0.06769744168253021, "name": "work lost", "unit": "h"}, {"figure": 14.198349652831897, "name": "useful", "unit": "h"}, {"figure": 0.03791853162612539, "name": "interruptions", "unit": "/h"}, {"figure": 0.13705227466166542, "name": "per useful hour", "unit": "$/h"}, {"figure": 744.6169116877405, "name": "score", "unit": "DLPerf h/$"}]}]','','26995929',121400,130289,'patient','/etc/gpubid/strategies/patient.toml','f03915d41026ac9f');
INSERT INTO "decisions" VALUES(2,1785110402000000,'train',0,'hold','running','starting at $0.1214/h','','[]','','',NULL,NULL,'patient','/etc/gpubid/strategies/patient.toml','f03915d41026ac9f');
INSERT INTO "decisions" VALUES(3,1785114768000000,'train',0,'pause','cancel_start','move to host 17526 at $0.2533/h on_demand; first make sure that the old lease cannot start by itself: $0.554 over 2 h against wait $0.642, let_go $0.720','','[{"dollars": 0.642413918743311, "name": "wait", "terms": [{"figure": 0.1214, "name": "price", "unit": "$/h"}, {"figure": 0.05157418048852494, "name": "gpu", "unit": "$"}, {"figure": 0.017778, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "data to move", "unit": "$"}, {"figure": 0.0, "name": "lost work", "unit": "$"}, {"figure": 0.40816183818115, "name": "useful", "unit": "h"}, {"figure": 0.573061738254786, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.5541662680119925, "name": "on_demand", "terms": [{"figure": 0.253333, "name": "price", "unit": "$/h"}, {"figure": 0.5027394344394795, "name": "gpu", "unit": "$"}, {"figure": 0.013334, "name": "disk", "unit": "$"}, {"figure": 0.016963333333333337, "name": "data to move", "unit": "$"}, {"figure": 0.0, "name": "lost work", "unit": "$"}, {"figure": 1.9413069437800563, "name": "useful", "unit": "h"}, {"figure": 0.02112950023917973, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9873053707928162, "name": "speed", "unit": ""}, {"figure": 0.011052178220735134, "name": "interruptions", "unit": ""}, {"figure": 0.9889985268017699, "name": "chance to hold it", "unit": ""}]}, {"dollars": 0.72, "name": "let_go", "terms": [{"figure": 0.72, "name": "worth of the other hours", "unit": "$"}]}]','vast-48447433','',NULL,NULL,'patient','/etc/gpubid/strategies/patient.toml','f03915d41026ac9f');
INSERT INTO "decisions" VALUES(4,1785114769000000,'train',0,'rent','move','move to host 17526 at $0.2533/h on_demand: $0.554 over 2 h against resume $0.643, let_go $0.720','','[{"dollars": 0.642557731612287, "name": "resume", "terms": [{"figure": 0.1214, "name": "price", "unit": "$/h"}, {"figure": 0.05150100830791432, "name": "gpu", "unit": "$"}, {"figure": 0.017778, "name": "disk", "unit": "$"}, {"figure": 0.0, "name": "data to move", "unit": "$"}, {"figure": 0.0, "name": "lost work", "unit": "$"}, {"figure": 0.4075591019322981, "name": "useful", "unit": "h"}, {"figure": 0.5732787233043727, "name": "worth of the other hours", "unit": "$"}, {"figure": 1.0, "name": "speed", "unit": ""}, {"figure": 0.0, "name": "interruptions", "unit": ""}]}, {"dollars": 0.5541662680119925, "name": "on_demand", "terms": [{"figure": 0.253333, "name": "price", "unit": "$/h"}, {"figure": 0.5027394344394795, "name": "gpu", "unit": "$"}, {"figure": 0.013334, "name": "disk", "unit": "$"}, {"figure": 0.016963333333333337, "name": "data to move", "unit": "$"}, {"figure": 0.0, "name": "lost work", "unit": "$"}, {"figure": 1.9413069437800563, "name": "useful", "unit": "h"}, {"figure": 0.02112950023917973, "name": "worth of the other hours", "unit": "$"}, {"figure": 0.9873053707928162, "name": "speed", "unit": ""}, {"figure": 0.011052178220735134, "name": "interruptions", "unit": ""}, {"figure": 0.9889985268017699, "name": "chance to hold it", "unit": ""}]}, {"dollars": 0.72, "name": "let_go", "terms": [{"figure": 0.72, "name": "worth of the other hours", "unit": "$"}]}]','','12891272',NULL,260000,'patient','/etc/gpubid/strategies/patient.toml','f03915d41026ac9f');
INSERT INTO "decisions" VALUES(5,1785114771000000,'train',0,'hold','moving','waits for host 17526 to be ready','','[]','','',NULL,NULL,'patient','/etc/gpubid/strategies/patient.toml','f03915d41026ac9f');
INSERT INTO "decisions" VALUES(6,1785114831000000,'train',0,'release','moved','the workload runs on another host','','[]','vast-48447433','',NULL,NULL,'patient','/etc/gpubid/strategies/patient.toml','f03915d41026ac9f');
INSERT INTO "decisions" VALUES(7,1785114834000000,'train',0,'hold','running','running at $0.2533/h','','[]','','',NULL,NULL,'patient','/etc/gpubid/strategies/patient.toml','f03915d41026ac9f');
CREATE TABLE events (
    event_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    seen_at INTEGER,
    workload TEXT NOT NULL,
    slot INTEGER,
    lease_id TEXT NOT NULL,
    intent_id TEXT NOT NULL,
    market TEXT NOT NULL,
    host_id TEXT NOT NULL,
    cause TEXT,
    rule TEXT NOT NULL,
    evidence TEXT NOT NULL,
    bid INTEGER,
    floor INTEGER,
    rate INTEGER,
    amount INTEGER,
    reason_code TEXT NOT NULL,
    reason TEXT NOT NULL, notice_at INTEGER,
    CONSTRAINT ck_events_kind CHECK (kind GLOB '?*.?*'),
    CONSTRAINT ck_events_cause CHECK (cause IN ('container_exit', 'contract_end', 'displaced', 'external_stop', 'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
    CONSTRAINT ck_events_bid CHECK (bid >= 0),
    CONSTRAINT ck_events_floor CHECK (floor >= 0),
    CONSTRAINT ck_events_rate CHECK (rate >= 0)
)
 STRICT;
INSERT INTO "events" VALUES(1,1785110400000000,'lease.opened',NULL,'train',0,'','f4eac08e209dc69c','vast','71430',NULL,'','',121400,NULL,130289,NULL,'best_offer','rent 1x RTX 4090 on host 71430 at $0.1214/h bid over a floor of $0.1213/h: 745 DLPerf h/$, 0.137 $ per useful hour',NULL);
INSERT INTO "events" VALUES(2,1785110460439027,'lease.running',1785110462000000,'train',0,'vast-48447433','f4eac08e209dc69c','vast','71430',NULL,'','',121400,NULL,130289,8681,'','',NULL);
INSERT INTO "events" VALUES(3,1785114756593424,'lease.interrupted',1785114768000000,'train',0,'vast-48447433','f4eac08e209dc69c','vast','71430','displaced','inbox','the market''s inbox says outbid at 01:12:36: new floor $0.5500/h, our bid $0.1214/h',121400,555000,8889,3452,'','',NULL);
INSERT INTO "events" VALUES(4,1785114768000000,'lease.paused',NULL,'train',0,'vast-48447433','d882b7a0171c8f12','vast','71430',NULL,'','',NULL,NULL,130289,NULL,'cancel_start','move to host 17526 at $0.2533/h on_demand; first make sure that the old lease cannot start by itself: $0.554 over 2 h against wait $0.642, let_go $0.720',NULL);
INSERT INTO "events" VALUES(5,1785114769000000,'lease.opened',NULL,'train',0,'','60c078e7579a067e','vast','17526',NULL,'','',NULL,NULL,260000,NULL,'move','move to host 17526 at $0.2533/h on_demand: $0.554 over 2 h against resume $0.643, let_go $0.720',NULL);
INSERT INTO "events" VALUES(6,1785114822459464,'lease.running',1785114831000000,'train',0,'vast-48447462','60c078e7579a067e','vast','17526',NULL,'','',253333,NULL,260000,1647,'','',NULL);
INSERT INTO "events" VALUES(7,1785114831000000,'lease.released_by_us',NULL,'train',0,'vast-48447433','f3cca1de1c8dd035','vast','71430',NULL,'','',NULL,NULL,NULL,NULL,'moved','the workload runs on another host',NULL);
INSERT INTO "events" VALUES(8,1785114831000000,'lease.released',1785114834000000,'train',0,'vast-48447433','f4eac08e209dc69c','vast','71430',NULL,'','',121400,NULL,0,0,'','moved',NULL);
CREATE TABLE guard_figures (
    lease_id TEXT NOT NULL,
    workload TEXT NOT NULL,
    slot INTEGER NOT NULL,
    market TEXT NOT NULL,
    host_id TEXT NOT NULL,
    run INTEGER NOT NULL,
    stretch INTEGER NOT NULL,
    told_at INTEGER NOT NULL,
    progress REAL,
    manifest TEXT NOT NULL,
    kept_at INTEGER,
    checkpoint_bytes INTEGER,
    took_seconds REAL,
    upload_seconds REAL,
    restore_seconds REAL,
    CONSTRAINT pk_guard_figures PRIMARY KEY (lease_id),
    CONSTRAINT ck_guard_figures_slot CHECK (slot >= 0),
    CONSTRAINT ck_guard_figures_run CHECK (run >= 0),
    CONSTRAINT ck_guard_figures_stretch CHECK (stretch >= 0),
    CONSTRAINT ck_guard_figures_checkpoint_bytes CHECK (checkpoint_bytes >= 0),
    CONSTRAINT ck_guard_figures_took_seconds CHECK (took_seconds >= 0),
    CONSTRAINT ck_guard_figures_upload_seconds CHECK (upload_seconds >= 0),
    CONSTRAINT ck_guard_figures_restore_seconds CHECK (restore_seconds >= 0)
) WITHOUT ROWID, STRICT
;
CREATE TABLE guard_notices (
    lease_id TEXT NOT NULL,
    lost_at INTEGER NOT NULL,
    market TEXT NOT NULL,
    sigterm_seen INTEGER NOT NULL,
    seconds REAL NOT NULL,
    told_at INTEGER NOT NULL,
    CONSTRAINT pk_guard_notices PRIMARY KEY (lease_id, lost_at),
    CONSTRAINT ck_guard_notices_sigterm_seen CHECK (sigterm_seen IN (0, 1)),
    CONSTRAINT ck_guard_notices_seconds CHECK (seconds >= 0)
) WITHOUT ROWID, STRICT
;
CREATE TABLE guard_runs (
    workload TEXT NOT NULL,
    slot INTEGER NOT NULL,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    spec_digest TEXT NOT NULL,
    begun_at INTEGER NOT NULL,
    CONSTRAINT pk_guard_runs PRIMARY KEY (workload, slot, run)
) WITHOUT ROWID, STRICT
;
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
    power_share REAL, seen_gpus INTEGER, seen_gpu TEXT, defect TEXT, script TEXT, pcie_generation INTEGER, pcie_width INTEGER, pcie_share REAL, clock_events INTEGER,
    CONSTRAINT pk_host_checks PRIMARY KEY (lease_id),
    CONSTRAINT ck_host_checks_gpus CHECK (gpus >= 0),
    CONSTRAINT ck_host_checks_dlperf CHECK (dlperf >= 0)
) WITHOUT ROWID, STRICT
;
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
    weighed_hours REAL NOT NULL,
    CONSTRAINT pk_hosts PRIMARY KEY (market, host_id),
    CONSTRAINT ck_hosts_running_seconds CHECK (running_seconds >= 0),
    CONSTRAINT ck_hosts_interruptions CHECK (interruptions >= 0),
    CONSTRAINT ck_hosts_starts_ok CHECK (starts_ok >= 0),
    CONSTRAINT ck_hosts_starts_failed CHECK (starts_failed >= 0),
    CONSTRAINT ck_hosts_market_losses CHECK (market_losses >= 0),
    CONSTRAINT ck_hosts_bid_seconds CHECK (bid_seconds >= 0),
    CONSTRAINT ck_hosts_loaded_gb CHECK (loaded_gb >= 0),
    CONSTRAINT ck_hosts_loading_seconds CHECK (loading_seconds >= 0),
    CONSTRAINT ck_hosts_displaced CHECK (displaced >= 0),
    CONSTRAINT ck_hosts_weighed_hours CHECK (weighed_hours >= 0)
)
 WITHOUT ROWID,
 STRICT;
INSERT INTO "hosts" VALUES('vast','17526','610088',910.316830494197,0.0,9.99276628938640776311e-01,0.0,1785115733000000,0.0,0.0,4.99638314469320299338e+00,5.34207929707866213675e+01,0.0,'{"ours": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "rivals": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "steps": [0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0]}',0.0);
INSERT INTO "hosts" VALUES('vast','71430','524427',4.28922907654542814263e+03,1.0,9.96551455584043233137e-01,0.0,1785114768000000,1.0,4.28922907654542814263e+03,4.9827572779202187192e+00,6.02306003309333135584e+01,1.0,'{"ours": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "rivals": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "steps": [0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0]}',9.73993388320906428035e-01);
CREATE TABLE intents (
    intent_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    market TEXT NOT NULL,
    workload TEXT NOT NULL,
    slot INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    lease_id TEXT NOT NULL,
    offer_id TEXT NOT NULL,
    host_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    tenure TEXT,
    price INTEGER,
    rate INTEGER NOT NULL,
    disk_gb REAL NOT NULL,
    sent_at INTEGER,
    doubted_at INTEGER,
    resolved_at INTEGER,
    outcome TEXT NOT NULL, guard_run INTEGER, guard_terms TEXT, gpu TEXT, gpus INTEGER,
    CONSTRAINT pk_intents PRIMARY KEY (intent_id),
    CONSTRAINT ck_intents_kind CHECK (kind IN ('pause', 'reassign', 'rebid', 'register_key', 'release', 'rent', 'resume')),
    CONSTRAINT ck_intents_state CHECK (state IN ('confirmed', 'denied', 'in_doubt', 'recorded', 'rejected', 'sent', 'void')),
    CONSTRAINT ck_intents_slot CHECK (slot >= 0),
    CONSTRAINT ck_intents_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
    CONSTRAINT ck_intents_price CHECK (price >= 0),
    CONSTRAINT ck_intents_rate CHECK (rate >= 0),
    CONSTRAINT ck_intents_disk_gb CHECK (disk_gb >= 0),
    CONSTRAINT ck_intents_resolved CHECK ((state IN ('in_doubt', 'recorded', 'sent')) = (resolved_at IS NULL))
)
 STRICT;
INSERT INTO "intents" VALUES('f4eac08e209dc69c','rent','confirmed','vast','train',0,1785110400000000,'rent 1x RTX 4090 on host 71430 at $0.1214/h bid over a floor of $0.1213/h: 745 DLPerf h/$, 0.137 $ per useful hour','vast-48447433','26995929','71430','48447433','interruptible',121400,130289,40.0,1785110400000000,NULL,1785110400000000,'done',NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES('d882b7a0171c8f12','pause','confirmed','vast','train',0,1785114768000000,'move to host 17526 at $0.2533/h on_demand; first make sure that the old lease cannot start by itself: $0.554 over 2 h against wait $0.642, let_go $0.720','vast-48447433','','71430','48447433','interruptible',NULL,130289,40.0,1785114768000000,NULL,1785114768000000,'done',NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES('60c078e7579a067e','rent','confirmed','vast','train',0,1785114769000000,'move to host 17526 at $0.2533/h on_demand: $0.554 over 2 h against resume $0.643, let_go $0.720','vast-48447462','12891272','17526','48447462','on_demand',NULL,260000,40.0,1785114769000000,NULL,1785114769000000,'done',NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES('f3cca1de1c8dd035','release','confirmed','vast','train',0,1785114831000000,'the workload runs on another host','vast-48447433','','71430','48447433','interruptible',NULL,130289,40.0,1785114831000000,NULL,1785114831000000,'done',NULL,NULL,NULL,NULL);
CREATE TABLE leases (
    lease_id TEXT NOT NULL,
    market TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    workload TEXT NOT NULL,
    slot INTEGER NOT NULL,
    tenure TEXT NOT NULL,
    state TEXT NOT NULL,
    host_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    offer_id TEXT NOT NULL,
    gpu TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    dlperf REAL NOT NULL,
    gpu_rate INTEGER NOT NULL,
    disk_rate INTEGER NOT NULL,
    disk_gb REAL NOT NULL,
    opened_at INTEGER NOT NULL,
    state_since INTEGER NOT NULL,
    bills TEXT NOT NULL,
    accrued_until INTEGER NOT NULL,
    intent_id TEXT NOT NULL,
    ask INTEGER,
    host_floor INTEGER,
    ends_at INTEGER,
    has_run INTEGER NOT NULL,
    has_failed INTEGER NOT NULL,
    run_since INTEGER,
    is_held INTEGER NOT NULL,
    paused_by_us INTEGER NOT NULL,
    interrupted_by TEXT,
    rival_floor INTEGER,
    recent_bids TEXT NOT NULL,
    bid_since INTEGER,
    traffic_down_gb REAL NOT NULL,
    traffic_up_gb REAL NOT NULL,
    ended_at INTEGER,
    end_reason TEXT NOT NULL,
    spec_digest TEXT NOT NULL,
    ready_since INTEGER,
    was_ready INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    idle_since INTEGER,
    ssh_address TEXT NOT NULL,
    ports TEXT NOT NULL,
    agreed_rate INTEGER,
    doubted_rate INTEGER,
    doubted_since INTEGER,
    doubted_listings INTEGER DEFAULT 0 NOT NULL,
    proven_at INTEGER,
    estranged_since INTEGER,
    vouched_at INTEGER, agreed_until INTEGER, guard_run INTEGER, read_back_at INTEGER, checkpoint_asked_at INTEGER, guard_terms TEXT, checkpoint_taken_at INTEGER, checkpoint_verified_at INTEGER, vram_mb INTEGER, loading_since INTEGER, stop_seen_at INTEGER, maintenance_told_at INTEGER, maintenance_begins_at INTEGER, maintenance_ends_at INTEGER, failed_probes INTEGER DEFAULT 0 NOT NULL, restarts INTEGER DEFAULT 0 NOT NULL, probe_failed_at INTEGER, unhealthy_since INTEGER, restart_at INTEGER, ran_micros INTEGER DEFAULT 0 NOT NULL, stalled_since INTEGER, stalled_at INTEGER, keys_seen_at INTEGER, label_intent_id TEXT DEFAULT '' NOT NULL, bid_limit INTEGER, notice_at INTEGER, egress_micros_per_gb INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT pk_leases PRIMARY KEY (lease_id),
    CONSTRAINT ck_leases_slot CHECK (slot >= 0),
    CONSTRAINT ck_leases_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
    CONSTRAINT ck_leases_state CHECK (state IN ('ended', 'exited', 'missing', 'offline', 'paused', 'releasing', 'running', 'starting')),
    CONSTRAINT ck_leases_gpus CHECK (gpus >= 0),
    CONSTRAINT ck_leases_dlperf CHECK (dlperf >= 0),
    CONSTRAINT ck_leases_gpu_rate CHECK (gpu_rate >= 0),
    CONSTRAINT ck_leases_disk_rate CHECK (disk_rate >= 0),
    CONSTRAINT ck_leases_disk_gb CHECK (disk_gb >= 0),
    CONSTRAINT ck_leases_bills CHECK (bills IN ('disk', 'gpu_and_disk', 'nothing')),
    CONSTRAINT ck_leases_ask CHECK (ask >= 0),
    CONSTRAINT ck_leases_host_floor CHECK (host_floor >= 0),
    CONSTRAINT ck_leases_has_run CHECK (has_run IN (0, 1)),
    CONSTRAINT ck_leases_has_failed CHECK (has_failed IN (0, 1)),
    CONSTRAINT ck_leases_is_held CHECK (is_held IN (0, 1)),
    CONSTRAINT ck_leases_paused_by_us CHECK (paused_by_us IN (0, 1)),
    CONSTRAINT ck_leases_interrupted_by CHECK (interrupted_by IN ('container_exit', 'contract_end', 'displaced', 'external_stop', 'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
    CONSTRAINT ck_leases_rival_floor CHECK (rival_floor >= 0),
    CONSTRAINT ck_leases_traffic_down_gb CHECK (traffic_down_gb >= 0),
    CONSTRAINT ck_leases_traffic_up_gb CHECK (traffic_up_gb >= 0),
    CONSTRAINT ck_leases_was_ready CHECK (was_ready IN (0, 1)),
    CONSTRAINT ck_leases_runs CHECK (runs >= 0),
    CONSTRAINT ck_leases_ended CHECK ((state = 'ended') = (ended_at IS NOT NULL))
)
 STRICT;
INSERT INTO "leases" VALUES('vast-48447433','vast','48447433','train',0,'interruptible','ended','71430','524427','26995929','RTX 4090',1,1.0205144149834927702e+02,121400,8889,40.0,1785110400000000,1785114831000000,'nothing',1785114831000000,'f4eac08e209dc69c',266667,121334,1792313431000000,1,0,NULL,0,1,'displaced',NULL,'[]',1785110400000000,3.50000000521374765583e+00,0.0,1785114834000000,'moved','67f271829b816b07',NULL,0,1,NULL,'ssh2.vast.ai:54866','22/tcp=198.51.100.192:54867',121400,NULL,NULL,0,1785110402000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,4236154397,NULL,NULL,NULL,'',NULL,NULL,0);
INSERT INTO "leases" VALUES('vast-48447462','vast','48447462','train',0,'on_demand','running','17526','610088','12891272','RTX 4090',1,1.00755936288469129637e+02,253333,6667,40.0,1785114769000000,1785114822459464,'gpu_and_disk',1785115733000000,'60c078e7579a067e',253333,260000,1803939023000000,1,0,1785114822459464,0,0,NULL,NULL,'[]',1785114769000000,3.49999999290302055143e+00,0.0,NULL,'','67f271829b816b07',NULL,0,1,NULL,'ssh4.vast.ai:54924','22/tcp=198.51.100.244:54925',253333,NULL,NULL,0,1785114771000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,850540536,NULL,NULL,NULL,'',NULL,NULL,0);
CREATE TABLE looks (
    market TEXT NOT NULL,
    at INTEGER NOT NULL,
    slices TEXT NOT NULL,
    CONSTRAINT pk_looks PRIMARY KEY (market, at)
)
 WITHOUT ROWID,
 STRICT;
INSERT INTO "looks" VALUES('vast',1785110400000000,'[["130233", 1], ["143184", 1], ["17526", 1], ["30796", 1], ["71430", 1]]');
INSERT INTO "looks" VALUES('vast',1785114002000000,'[["130233", 1], ["143184", 1], ["17526", 1], ["30796", 1], ["43707", 1], ["71430", 1]]');
INSERT INTO "looks" VALUES('vast',1785114768000000,'[["130233", 1], ["143184", 1], ["146266", 1], ["17526", 1], ["30796", 1], ["43707", 1]]');
INSERT INTO "looks" VALUES('vast',1785115673000000,'[["130233", 1], ["143184", 1], ["30796", 1], ["43707", 1], ["71430", 1]]');
CREATE TABLE losses (
    lease_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    lost INTEGER NOT NULL, is_measured INTEGER,
    CONSTRAINT pk_losses PRIMARY KEY (lease_id, at),
    CONSTRAINT ck_losses_cause CHECK (cause IN ('container_exit', 'contract_end', 'displaced', 'external_stop', 'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
    CONSTRAINT ck_losses_lost CHECK (lost >= 0)
)
 WITHOUT ROWID,
 STRICT;
INSERT INTO "losses" VALUES('vast-48447433',1785114756593424,'displaced',636154397,NULL);
CREATE TABLE meta (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    CONSTRAINT pk_meta PRIMARY KEY ("key")
)
 STRICT;
INSERT INTO "meta" VALUES('fleet_id','c0ffee000000');
INSERT INTO "meta" VALUES('account/vast','230742');
INSERT INTO "meta" VALUES('credit/vast','99733882 2026-07-27T01:29:08+00:00');
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
)
 WITHOUT ROWID,
 STRICT;
INSERT INTO "phases" VALUES('vast-48447433','2026-07-27','interruptible',4296154397,0,60000000,3600000000,636154397,333);
INSERT INTO "phases" VALUES('vast-48447462','2026-07-27','on_demand',910540536,0,60000000,850540536,0,99);
CREATE TABLE price_rollups (
    market TEXT NOT NULL,
    gpu TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    hour INTEGER NOT NULL,
    asks INTEGER NOT NULL,
    ask_sum INTEGER NOT NULL,
    ask_min INTEGER,
    ask_max INTEGER,
    floors INTEGER NOT NULL,
    floor_sum INTEGER NOT NULL,
    floor_min INTEGER,
    floor_max INTEGER,
    CONSTRAINT pk_price_rollups PRIMARY KEY (market, gpu, gpus, hour),
    CONSTRAINT ck_price_rollups_asks CHECK (asks >= 0),
    CONSTRAINT ck_price_rollups_ask_sum CHECK (ask_sum >= 0),
    CONSTRAINT ck_price_rollups_ask_min CHECK (ask_min >= 0),
    CONSTRAINT ck_price_rollups_ask_max CHECK (ask_max >= 0),
    CONSTRAINT ck_price_rollups_floors CHECK (floors >= 0),
    CONSTRAINT ck_price_rollups_floor_sum CHECK (floor_sum >= 0),
    CONSTRAINT ck_price_rollups_floor_min CHECK (floor_min >= 0),
    CONSTRAINT ck_price_rollups_floor_max CHECK (floor_max >= 0)
)
 WITHOUT ROWID,
 STRICT;
CREATE TABLE prices (
    market TEXT NOT NULL,
    host_id TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    at INTEGER NOT NULL,
    gpu TEXT NOT NULL,
    ask INTEGER,
    floor INTEGER,
    CONSTRAINT pk_prices PRIMARY KEY (market, host_id, gpus, at),
    CONSTRAINT ck_prices_ask CHECK (ask >= 0),
    CONSTRAINT ck_prices_floor CHECK (floor >= 0)
)
 WITHOUT ROWID,
 STRICT;
INSERT INTO "prices" VALUES('vast','130233',1,1785110400000000,'RTX 4090',520000,221334);
INSERT INTO "prices" VALUES('vast','130233',1,1785114002000000,'RTX 4090',520000,258000);
INSERT INTO "prices" VALUES('vast','143184',1,1785110400000000,'RTX 4090',360000,360000);
INSERT INTO "prices" VALUES('vast','146266',1,1785114768000000,'RTX 4090',NULL,286667);
INSERT INTO "prices" VALUES('vast','17526',1,1785110400000000,'RTX 4090',253333,260000);
INSERT INTO "prices" VALUES('vast','30796',1,1785110400000000,'RTX 4090',200000,200000);
INSERT INTO "prices" VALUES('vast','43707',1,1785114002000000,'RTX 4090',453333,390667);
INSERT INTO "prices" VALUES('vast','71430',1,1785110400000000,'RTX 4090',266667,121334);
INSERT INTO "prices" VALUES('vast','71430',1,1785114002000000,'RTX 4090',266667,121000);
INSERT INTO "prices" VALUES('vast','71430',1,1785115673000000,'RTX 4090',266667,121334);
CREATE TABLE progress (
    workload TEXT NOT NULL,
    hours REAL NOT NULL,
    told_at INTEGER NOT NULL,
    since INTEGER NOT NULL,
    source TEXT NOT NULL,
    lease_id TEXT NOT NULL, number REAL,
    CONSTRAINT pk_progress PRIMARY KEY (workload),
    CONSTRAINT ck_progress_hours CHECK (hours >= 0)
)
 WITHOUT ROWID,
 STRICT;
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
)
 STRICT;
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
)
 WITHOUT ROWID,
 STRICT;
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
CREATE TABLE slices (
    market TEXT NOT NULL,
    host_id TEXT NOT NULL,
    gpus INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    facts TEXT NOT NULL,
    CONSTRAINT pk_slices PRIMARY KEY (market, host_id, gpus)
)
 WITHOUT ROWID,
 STRICT;
INSERT INTO "slices" VALUES('vast','130233',1,1785115673000000,'{"disk_gb": 228.475, "dlperf": 101.55068474060317, "ends_at": "2027-05-18T11:26:15Z", "gpu": "RTX 4090", "inet_down_mbps": 3287.1, "inet_up_mbps": 2452.8, "is_rentable": true, "is_verified": true, "offer_id": "41522946", "owner_id": "53199", "region": "Norway, NO", "reliability": 0.9980523, "storage_micros_per_gb_month": 186667, "traffic_down_micros_per_gb": 5143, "traffic_up_micros_per_gb": 10286, "vram_mb": 24564}');
INSERT INTO "slices" VALUES('vast','143184',1,1785115673000000,'{"disk_gb": 435.5, "dlperf": 51.60018609056864, "ends_at": "2026-08-10T17:35:59Z", "gpu": "RTX 4090", "inet_down_mbps": 3135.1, "inet_up_mbps": 2653.4, "is_rentable": true, "is_verified": true, "offer_id": "45470388", "owner_id": "66573", "region": "Norway, NO", "reliability": 0.9892386, "storage_micros_per_gb_month": 506667, "traffic_down_micros_per_gb": 6901, "traffic_up_micros_per_gb": 6901, "vram_mb": 24564}');
INSERT INTO "slices" VALUES('vast','146266',1,1785114768000000,'{"disk_gb": 791.1, "dlperf": 100.49942764311804, "ends_at": "2026-10-23T06:02:20Z", "gpu": "RTX 4090", "inet_down_mbps": 1174.4, "inet_up_mbps": 949.6, "is_rentable": true, "is_verified": true, "offer_id": "45815476", "owner_id": "301674", "region": "Poland, PL", "reliability": 0.9988161, "storage_micros_per_gb_month": 280000, "traffic_down_micros_per_gb": 65, "traffic_up_micros_per_gb": 130, "vram_mb": 24564}');
INSERT INTO "slices" VALUES('vast','17526',1,1785114768000000,'{"disk_gb": 169.4, "dlperf": 100.75593628846913, "ends_at": "2027-03-01T22:10:23Z", "gpu": "RTX 4090", "inet_down_mbps": 2806.9, "inet_up_mbps": 1152.2, "is_rentable": true, "is_verified": true, "offer_id": "12891272", "owner_id": "610088", "region": "Australia, AU", "reliability": 0.9889842, "storage_micros_per_gb_month": 120000, "traffic_down_micros_per_gb": 2181, "traffic_up_micros_per_gb": 3255, "vram_mb": 24564}');
INSERT INTO "slices" VALUES('vast','30796',1,1785115673000000,'{"disk_gb": 246.3, "dlperf": 49.39610143349902, "ends_at": "2026-09-07T03:02:00Z", "gpu": "RTX 4090", "inet_down_mbps": 110.5, "inet_up_mbps": 82.5, "is_rentable": true, "is_verified": true, "offer_id": "17401869", "owner_id": "233861", "region": "Guangdong, CN", "reliability": 0.9980396, "storage_micros_per_gb_month": 613333, "traffic_down_micros_per_gb": 785, "traffic_up_micros_per_gb": 1172, "vram_mb": 24564}');
INSERT INTO "slices" VALUES('vast','43707',1,1785115673000000,'{"disk_gb": 1833.35, "dlperf": 101.1853435144543, "ends_at": "2027-05-09T10:07:40Z", "gpu": "RTX 4090", "inet_down_mbps": 2240.4, "inet_up_mbps": 1167.9, "is_rentable": true, "is_verified": true, "offer_id": "19933259", "owner_id": "277258", "region": "The Netherlands, NL", "reliability": 0.9821218, "storage_micros_per_gb_month": 160000, "traffic_down_micros_per_gb": 260, "traffic_up_micros_per_gb": 521, "vram_mb": 24564}');
INSERT INTO "slices" VALUES('vast','71430',1,1785115673000000,'{"disk_gb": 567.35, "dlperf": 102.05144149834928, "ends_at": "2026-10-18T08:50:31Z", "gpu": "RTX 4090", "inet_down_mbps": 4049.9, "inet_up_mbps": 3763.7, "is_rentable": true, "is_verified": true, "offer_id": "26995929", "owner_id": "524427", "region": "Texas, US", "reliability": 0.9991264, "storage_micros_per_gb_month": 160000, "traffic_down_micros_per_gb": 10207, "traffic_up_micros_per_gb": 15234, "vram_mb": 24564}');
CREATE TABLE speeds (
    workload TEXT NOT NULL,
    gpu TEXT NOT NULL,
    hours REAL NOT NULL,
    running_hours REAL NOT NULL,
    CONSTRAINT pk_speeds PRIMARY KEY (workload, gpu),
    CONSTRAINT ck_speeds_hours CHECK (hours >= 0),
    CONSTRAINT ck_speeds_running_hours CHECK (running_hours >= 0)
)
 WITHOUT ROWID,
 STRICT;
CREATE TABLE spend (
    lease_id TEXT NOT NULL,
    day TEXT NOT NULL,
    tenure TEXT NOT NULL,
    workload TEXT NOT NULL,
    market TEXT NOT NULL,
    gpu INTEGER NOT NULL,
    disk INTEGER NOT NULL,
    traffic INTEGER NOT NULL,
    running_seconds REAL NOT NULL,
    useful_seconds REAL NOT NULL,
    CONSTRAINT pk_spend PRIMARY KEY (lease_id, day, tenure),
    CONSTRAINT ck_spend_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
    CONSTRAINT ck_spend_gpu CHECK (gpu >= 0),
    CONSTRAINT ck_spend_disk CHECK (disk >= 0),
    CONSTRAINT ck_spend_traffic CHECK (traffic >= 0),
    CONSTRAINT ck_spend_running_seconds CHECK (running_seconds >= 0),
    CONSTRAINT ck_spend_useful_seconds CHECK (useful_seconds >= 0)
)
 WITHOUT ROWID,
 STRICT;
INSERT INTO "spend" VALUES('vast-48447433','2026-07-27','interruptible','train','vast',144881,10945,35725,4.29615439699999933495e+03,3600.0);
INSERT INTO "spend" VALUES('vast-48447462','2026-07-27','on_demand','train','vast',64075,1786,7633,910.540536,0.0);
CREATE INDEX ix_decisions_slot ON decisions (workload, slot, decision_id);
CREATE INDEX ix_events_at ON events (at);
CREATE INDEX ix_events_lease_id_at ON events (lease_id, at);
CREATE INDEX ix_events_workload_at ON events (workload, at);
CREATE INDEX ix_leases_instance_id ON leases (instance_id);
CREATE INDEX ix_leases_open ON leases (state) WHERE state <> 'ended';
CREATE INDEX ix_leases_opened_at ON leases (opened_at);
CREATE UNIQUE INDEX uq_leases_open_instance ON leases (market, instance_id) WHERE state <> 'ended';
CREATE INDEX ix_shadow_decisions_shadow ON shadow_decisions (workload, strategy, decision_id);
CREATE INDEX ix_spend_day ON spend (day);
CREATE INDEX ix_intents_lease_id ON intents (lease_id);
CREATE INDEX ix_intents_open ON intents (state) WHERE state IN ('in_doubt', 'recorded', 'sent');
CREATE INDEX ix_intents_recorded_at ON intents (recorded_at);
CREATE UNIQUE INDEX uq_intents_open_paying ON intents (workload, slot) WHERE kind IN ('rebid', 'rent', 'resume') AND state IN ('in_doubt', 'recorded', 'sent');
CREATE INDEX ix_cooldowns_until ON cooldowns (until);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('decisions',7);
INSERT INTO "sqlite_sequence" VALUES('events',8);
COMMIT;
INSERT INTO alembic_version VALUES('0130');
