-- The ledger of the first release, as SQLite makes it; the history that must be kept begins here.

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

CREATE TABLE cooldowns (
    scope TEXT NOT NULL,
    "key" TEXT NOT NULL,
    since INTEGER,
    until INTEGER,
    code TEXT NOT NULL,
    count INTEGER NOT NULL,
    CONSTRAINT pk_cooldowns PRIMARY KEY (scope, "key"),
    CONSTRAINT ck_cooldowns_count CHECK (count >= 0),
    CONSTRAINT ck_cooldowns_scope CHECK (scope IN ('cool_off', 'done', 'drain', 'failed_start', 'fast_exit', 'fleet', 'full', 'held', 'host', 'kill', 'lock', 'market', 'moved', 'offer', 'owner', 'pause', 'ran', 'rejected', 'slot', 'started', 'starts', 'storm', 'underbid', 'crossed')),
    CONSTRAINT ck_cooldowns_time CHECK (since IS NOT NULL OR until IS NOT NULL)
)
 WITHOUT ROWID,
 STRICT;

CREATE INDEX ix_cooldowns_until ON cooldowns (until);

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

CREATE INDEX ix_decisions_slot ON decisions (workload, slot, decision_id);

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
    reason TEXT NOT NULL,
    CONSTRAINT ck_events_kind CHECK (kind GLOB '?*.?*'),
    CONSTRAINT ck_events_cause CHECK (cause IN ('container_exit', 'contract_end', 'displaced', 'external_stop', 'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
    CONSTRAINT ck_events_bid CHECK (bid >= 0),
    CONSTRAINT ck_events_floor CHECK (floor >= 0),
    CONSTRAINT ck_events_rate CHECK (rate >= 0)
)
 STRICT;

CREATE INDEX ix_events_at ON events (at);

CREATE INDEX ix_events_lease_id_at ON events (lease_id, at);

CREATE INDEX ix_events_workload_at ON events (workload, at);

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
    outcome TEXT NOT NULL,
    CONSTRAINT pk_intents PRIMARY KEY (intent_id),
    CONSTRAINT ck_intents_kind CHECK (kind IN ('pause', 'rebid', 'release', 'rent', 'resume')),
    CONSTRAINT ck_intents_state CHECK (state IN ('confirmed', 'denied', 'in_doubt', 'recorded', 'rejected', 'sent', 'void')),
    CONSTRAINT ck_intents_slot CHECK (slot >= 0),
    CONSTRAINT ck_intents_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
    CONSTRAINT ck_intents_price CHECK (price >= 0),
    CONSTRAINT ck_intents_rate CHECK (rate >= 0),
    CONSTRAINT ck_intents_disk_gb CHECK (disk_gb >= 0),
    CONSTRAINT ck_intents_resolved CHECK ((state IN ('in_doubt', 'recorded', 'sent')) = (resolved_at IS NULL))
)
 STRICT;

CREATE INDEX ix_intents_lease_id ON intents (lease_id);

CREATE INDEX ix_intents_open ON intents (state) WHERE state IN ('in_doubt', 'recorded', 'sent');

CREATE INDEX ix_intents_recorded_at ON intents (recorded_at);

CREATE UNIQUE INDEX uq_intents_open_paying ON intents (workload, slot) WHERE kind IN ('rebid', 'rent', 'resume') AND state IN ('in_doubt', 'recorded', 'sent');

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
    vouched_at INTEGER,
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

CREATE INDEX ix_leases_instance_id ON leases (instance_id);

CREATE INDEX ix_leases_open ON leases (state) WHERE state <> 'ended';

CREATE INDEX ix_leases_opened_at ON leases (opened_at);

CREATE UNIQUE INDEX uq_leases_open_instance ON leases (market, instance_id) WHERE state <> 'ended';

CREATE TABLE looks (
    market TEXT NOT NULL,
    at INTEGER NOT NULL,
    slices TEXT NOT NULL,
    CONSTRAINT pk_looks PRIMARY KEY (market, at)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE losses (
    lease_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    cause TEXT NOT NULL,
    lost INTEGER NOT NULL,
    CONSTRAINT pk_losses PRIMARY KEY (lease_id, at),
    CONSTRAINT ck_losses_cause CHECK (cause IN ('container_exit', 'contract_end', 'displaced', 'external_stop', 'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
    CONSTRAINT ck_losses_lost CHECK (lost >= 0)
)
 WITHOUT ROWID,
 STRICT;

CREATE TABLE meta (
    "key" TEXT NOT NULL,
    value TEXT NOT NULL,
    CONSTRAINT pk_meta PRIMARY KEY ("key")
)
 STRICT;

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

CREATE TABLE progress (
    workload TEXT NOT NULL,
    hours REAL NOT NULL,
    told_at INTEGER NOT NULL,
    since INTEGER NOT NULL,
    source TEXT NOT NULL,
    lease_id TEXT NOT NULL,
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

CREATE INDEX ix_shadow_decisions_shadow ON shadow_decisions (workload, strategy, decision_id);

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

CREATE INDEX ix_spend_day ON spend (day);
