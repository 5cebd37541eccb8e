-- The tables of the first schema that was ever on a server, as PostgreSQL is told them; upgrades begin here.
CREATE TABLE meta (
	key TEXT COLLATE "C" NOT NULL,
	value TEXT COLLATE "C" NOT NULL,
	CONSTRAINT pk_meta PRIMARY KEY (key)
);

CREATE TABLE leases (
	lease_id TEXT COLLATE "C" NOT NULL,
	market TEXT COLLATE "C" NOT NULL,
	instance_id TEXT COLLATE "C" NOT NULL,
	workload TEXT COLLATE "C" NOT NULL,
	slot BIGINT NOT NULL,
	tenure TEXT COLLATE "C" NOT NULL,
	state TEXT COLLATE "C" NOT NULL,
	host_id TEXT COLLATE "C" NOT NULL,
	owner_id TEXT COLLATE "C" NOT NULL,
	offer_id TEXT COLLATE "C" NOT NULL,
	gpu TEXT COLLATE "C" NOT NULL,
	gpus BIGINT NOT NULL,
	dlperf DOUBLE PRECISION NOT NULL,
	gpu_rate BIGINT NOT NULL,
	disk_rate BIGINT NOT NULL,
	disk_gb DOUBLE PRECISION NOT NULL,
	opened_at BIGINT NOT NULL,
	state_since BIGINT NOT NULL,
	bills TEXT COLLATE "C" NOT NULL,
	accrued_until BIGINT NOT NULL,
	intent_id TEXT COLLATE "C" NOT NULL,
	ask BIGINT,
	host_floor BIGINT,
	ends_at BIGINT,
	has_run BIGINT NOT NULL,
	has_failed BIGINT NOT NULL,
	run_since BIGINT,
	is_held BIGINT NOT NULL,
	paused_by_us BIGINT NOT NULL,
	interrupted_by TEXT COLLATE "C",
	rival_floor BIGINT,
	recent_bids TEXT COLLATE "C" NOT NULL,
	bid_since BIGINT,
	traffic_down_gb DOUBLE PRECISION NOT NULL,
	traffic_up_gb DOUBLE PRECISION NOT NULL,
	ended_at BIGINT,
	end_reason TEXT COLLATE "C" NOT NULL,
	spec_digest TEXT COLLATE "C" NOT NULL,
	ready_since BIGINT,
	was_ready BIGINT NOT NULL,
	runs BIGINT NOT NULL,
	idle_since BIGINT,
	ssh_address TEXT COLLATE "C" NOT NULL,
	ports TEXT COLLATE "C" NOT NULL,
	agreed_rate BIGINT,
	doubted_rate BIGINT,
	doubted_since BIGINT,
	doubted_listings BIGINT DEFAULT 0 NOT NULL,
	proven_at BIGINT,
	estranged_since BIGINT,
	vouched_at BIGINT,
	agreed_until BIGINT,
	guard_run BIGINT,
	read_back_at BIGINT,
	checkpoint_asked_at BIGINT,
	guard_terms TEXT COLLATE "C",
	checkpoint_taken_at BIGINT,
	checkpoint_verified_at BIGINT,
	vram_mb BIGINT,
	loading_since BIGINT,
	stop_seen_at BIGINT,
	maintenance_told_at BIGINT,
	maintenance_begins_at BIGINT,
	maintenance_ends_at BIGINT,
	failed_probes BIGINT DEFAULT 0 NOT NULL,
	restarts BIGINT DEFAULT 0 NOT NULL,
	probe_failed_at BIGINT,
	unhealthy_since BIGINT,
	restart_at BIGINT,
	ran_micros BIGINT DEFAULT 0 NOT NULL,
	stalled_since BIGINT,
	stalled_at BIGINT,
	keys_seen_at BIGINT,
	label_intent_id TEXT COLLATE "C" DEFAULT '' NOT NULL,
	bid_limit BIGINT,
	notice_at BIGINT,
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
);

CREATE UNIQUE INDEX uq_leases_open_instance ON leases (market, instance_id) WHERE state <> 'ended';

CREATE INDEX ix_leases_open ON leases (state) WHERE state <> 'ended';

CREATE INDEX ix_leases_instance_id ON leases (instance_id);

CREATE INDEX ix_leases_opened_at ON leases (opened_at);

CREATE TABLE intents (
	intent_id TEXT COLLATE "C" NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,
	state TEXT COLLATE "C" NOT NULL,
	market TEXT COLLATE "C" NOT NULL,
	workload TEXT COLLATE "C" NOT NULL,
	slot BIGINT NOT NULL,
	recorded_at BIGINT NOT NULL,
	reason TEXT COLLATE "C" NOT NULL,
	lease_id TEXT COLLATE "C" NOT NULL,
	offer_id TEXT COLLATE "C" NOT NULL,
	host_id TEXT COLLATE "C" NOT NULL,
	instance_id TEXT COLLATE "C" NOT NULL,
	tenure TEXT COLLATE "C",
	price BIGINT,
	rate BIGINT NOT NULL,
	disk_gb DOUBLE PRECISION NOT NULL,
	sent_at BIGINT,
	doubted_at BIGINT,
	resolved_at BIGINT,
	outcome TEXT COLLATE "C" NOT NULL,
	guard_run BIGINT,
	guard_terms TEXT COLLATE "C",
	CONSTRAINT pk_intents PRIMARY KEY (intent_id),
	CONSTRAINT ck_intents_kind CHECK (kind IN ('pause', 'reassign', 'rebid', 'register_key', 'release', 'rent', 'resume')),
	CONSTRAINT ck_intents_state CHECK (state IN ('confirmed', 'denied', 'in_doubt', 'recorded', 'rejected', 'sent', 'void')),
	CONSTRAINT ck_intents_slot CHECK (slot >= 0),
	CONSTRAINT ck_intents_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
	CONSTRAINT ck_intents_price CHECK (price >= 0),
	CONSTRAINT ck_intents_rate CHECK (rate >= 0),
	CONSTRAINT ck_intents_disk_gb CHECK (disk_gb >= 0),
	CONSTRAINT ck_intents_resolved CHECK ((state IN ('in_doubt', 'recorded', 'sent')) = (resolved_at IS NULL))
);

CREATE UNIQUE INDEX uq_intents_open_paying ON intents (workload, slot) WHERE kind IN ('rebid', 'rent', 'resume') AND state IN ('in_doubt', 'recorded', 'sent');

CREATE INDEX ix_intents_open ON intents (state) WHERE state IN ('in_doubt', 'recorded', 'sent');

CREATE INDEX ix_intents_recorded_at ON intents (recorded_at);

CREATE INDEX ix_intents_lease_id ON intents (lease_id);

CREATE TABLE events (
	event_id BIGINT GENERATED BY DEFAULT AS IDENTITY,
	at BIGINT NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,
	seen_at BIGINT,
	workload TEXT COLLATE "C" NOT NULL,
	slot BIGINT,
	lease_id TEXT COLLATE "C" NOT NULL,
	intent_id TEXT COLLATE "C" NOT NULL,
	market TEXT COLLATE "C" NOT NULL,
	host_id TEXT COLLATE "C" NOT NULL,
	cause TEXT COLLATE "C",
	rule TEXT COLLATE "C" NOT NULL,
	evidence TEXT COLLATE "C" NOT NULL,
	bid BIGINT,
	floor BIGINT,
	rate BIGINT,
	amount BIGINT,
	reason_code TEXT COLLATE "C" NOT NULL,
	reason TEXT COLLATE "C" NOT NULL,
	notice_at BIGINT,
	CONSTRAINT pk_events PRIMARY KEY (event_id),
	CONSTRAINT ck_events_kind CHECK (kind ~ '.[.].'),
	CONSTRAINT ck_events_cause CHECK (cause IN ('container_exit', 'contract_end', 'displaced', 'external_stop', 'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
	CONSTRAINT ck_events_bid CHECK (bid >= 0),
	CONSTRAINT ck_events_floor CHECK (floor >= 0),
	CONSTRAINT ck_events_rate CHECK (rate >= 0)
);

CREATE INDEX ix_events_at ON events (at);

CREATE INDEX ix_events_lease_id_at ON events (lease_id, at);

CREATE INDEX ix_events_workload_at ON events (workload, at);

CREATE TABLE spend (
	lease_id TEXT COLLATE "C" NOT NULL,
	day TEXT COLLATE "C" NOT NULL,
	tenure TEXT COLLATE "C" NOT NULL,
	workload TEXT COLLATE "C" NOT NULL,
	market TEXT COLLATE "C" NOT NULL,
	gpu BIGINT NOT NULL,
	disk BIGINT NOT NULL,
	traffic BIGINT NOT NULL,
	running_seconds DOUBLE PRECISION NOT NULL,
	useful_seconds DOUBLE PRECISION NOT NULL,
	CONSTRAINT pk_spend PRIMARY KEY (lease_id, day, tenure),
	CONSTRAINT ck_spend_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
	CONSTRAINT ck_spend_gpu CHECK (gpu >= 0),
	CONSTRAINT ck_spend_disk CHECK (disk >= 0),
	CONSTRAINT ck_spend_traffic CHECK (traffic >= 0),
	CONSTRAINT ck_spend_running_seconds CHECK (running_seconds >= 0),
	CONSTRAINT ck_spend_useful_seconds CHECK (useful_seconds >= 0)
);

CREATE INDEX ix_spend_day ON spend (day);

CREATE TABLE phases (
	lease_id TEXT COLLATE "C" NOT NULL,
	day TEXT COLLATE "C" NOT NULL,
	tenure TEXT COLLATE "C" NOT NULL,
	paid BIGINT NOT NULL,
	loading BIGINT NOT NULL,
	restoring BIGINT NOT NULL,
	useful BIGINT NOT NULL,
	lost BIGINT NOT NULL,
	paused_disk BIGINT NOT NULL,
	CONSTRAINT pk_phases PRIMARY KEY (lease_id, day, tenure),
	CONSTRAINT ck_phases_tenure CHECK (tenure IN ('interruptible', 'on_demand', 'reserved')),
	CONSTRAINT ck_phases_paid CHECK (paid >= 0),
	CONSTRAINT ck_phases_loading CHECK (loading >= 0),
	CONSTRAINT ck_phases_restoring CHECK (restoring >= 0),
	CONSTRAINT ck_phases_useful CHECK (useful >= 0),
	CONSTRAINT ck_phases_lost CHECK (lost >= 0),
	CONSTRAINT ck_phases_paused_disk CHECK (paused_disk >= 0),
	CONSTRAINT ck_phases_parts CHECK (paid = loading + restoring + useful + lost)
);

CREATE TABLE losses (
	lease_id TEXT COLLATE "C" NOT NULL,
	at BIGINT NOT NULL,
	cause TEXT COLLATE "C" NOT NULL,
	lost BIGINT NOT NULL,
	is_measured BIGINT,
	CONSTRAINT pk_losses PRIMARY KEY (lease_id, at),
	CONSTRAINT ck_losses_cause CHECK (cause IN ('container_exit', 'contract_end', 'displaced', 'external_stop', 'host_gone', 'host_offline', 'out_of_credit', 'outbid', 'unknown')),
	CONSTRAINT ck_losses_lost CHECK (lost >= 0)
);

CREATE TABLE bills (
	market TEXT COLLATE "C" NOT NULL,
	day TEXT COLLATE "C" NOT NULL,
	instance_id TEXT COLLATE "C" NOT NULL,
	lease_id TEXT COLLATE "C" NOT NULL,
	estimate BIGINT NOT NULL,
	estimated_at BIGINT NOT NULL,
	charged BIGINT,
	charged_at BIGINT,
	CONSTRAINT pk_bills PRIMARY KEY (market, day, instance_id),
	CONSTRAINT ck_bills_estimate CHECK (estimate >= 0)
);

CREATE TABLE prices (
	market TEXT COLLATE "C" NOT NULL,
	host_id TEXT COLLATE "C" NOT NULL,
	gpus BIGINT NOT NULL,
	at BIGINT NOT NULL,
	gpu TEXT COLLATE "C" NOT NULL,
	ask BIGINT,
	floor BIGINT,
	CONSTRAINT pk_prices PRIMARY KEY (market, host_id, gpus, at),
	CONSTRAINT ck_prices_ask CHECK (ask >= 0),
	CONSTRAINT ck_prices_floor CHECK (floor >= 0)
);

CREATE TABLE price_rollups (
	market TEXT COLLATE "C" NOT NULL,
	gpu TEXT COLLATE "C" NOT NULL,
	gpus BIGINT NOT NULL,
	hour BIGINT NOT NULL,
	asks BIGINT NOT NULL,
	ask_sum BIGINT NOT NULL,
	ask_min BIGINT,
	ask_max BIGINT,
	floors BIGINT NOT NULL,
	floor_sum BIGINT NOT NULL,
	floor_min BIGINT,
	floor_max BIGINT,
	CONSTRAINT pk_price_rollups PRIMARY KEY (market, gpu, gpus, hour),
	CONSTRAINT ck_price_rollups_asks CHECK (asks >= 0),
	CONSTRAINT ck_price_rollups_ask_sum CHECK (ask_sum >= 0),
	CONSTRAINT ck_price_rollups_ask_min CHECK (ask_min >= 0),
	CONSTRAINT ck_price_rollups_ask_max CHECK (ask_max >= 0),
	CONSTRAINT ck_price_rollups_floors CHECK (floors >= 0),
	CONSTRAINT ck_price_rollups_floor_sum CHECK (floor_sum >= 0),
	CONSTRAINT ck_price_rollups_floor_min CHECK (floor_min >= 0),
	CONSTRAINT ck_price_rollups_floor_max CHECK (floor_max >= 0)
);

CREATE TABLE cooldowns (
	scope TEXT COLLATE "C" NOT NULL,
	key TEXT COLLATE "C" NOT NULL,
	since BIGINT,
	until BIGINT,
	code TEXT COLLATE "C" NOT NULL,
	count BIGINT NOT NULL,
	CONSTRAINT pk_cooldowns PRIMARY KEY (scope, key),
	CONSTRAINT ck_cooldowns_count CHECK (count >= 0),
	CONSTRAINT ck_cooldowns_scope CHECK (scope IN ('cool_off', 'done', 'drain', 'failed_start', 'failed_task', 'fast_exit', 'fleet', 'full', 'held', 'host', 'kill', 'lock', 'market', 'moved', 'offer', 'owner', 'pause', 'ran', 'rejected', 'slot', 'stalled', 'started', 'starts', 'storm', 'underbid', 'untaken', 'crossed')),
	CONSTRAINT ck_cooldowns_time CHECK (since IS NOT NULL OR until IS NOT NULL)
);

CREATE INDEX ix_cooldowns_until ON cooldowns (until);

CREATE TABLE hosts (
	market TEXT COLLATE "C" NOT NULL,
	host_id TEXT COLLATE "C" NOT NULL,
	owner_id TEXT COLLATE "C" NOT NULL,
	running_seconds DOUBLE PRECISION NOT NULL,
	interruptions DOUBLE PRECISION NOT NULL,
	starts_ok DOUBLE PRECISION NOT NULL,
	starts_failed DOUBLE PRECISION NOT NULL,
	updated_at BIGINT,
	market_losses DOUBLE PRECISION NOT NULL,
	bid_seconds DOUBLE PRECISION NOT NULL,
	loaded_gb DOUBLE PRECISION NOT NULL,
	loading_seconds DOUBLE PRECISION NOT NULL,
	displaced DOUBLE PRECISION NOT NULL,
	outbids TEXT COLLATE "C" NOT NULL,
	weighed_hours DOUBLE PRECISION NOT NULL,
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
);

CREATE TABLE capacity (
	market TEXT COLLATE "C" NOT NULL,
	pool TEXT COLLATE "C" NOT NULL,
	is_there BIGINT NOT NULL,
	is_begun BIGINT NOT NULL,
	since BIGINT NOT NULL,
	seen_at BIGINT NOT NULL,
	price BIGINT,
	version TEXT COLLATE "C" NOT NULL,
	evidence TEXT COLLATE "C" NOT NULL,
	there TEXT COLLATE "C" NOT NULL,
	away TEXT COLLATE "C" NOT NULL,
	looks BIGINT NOT NULL,
	CONSTRAINT pk_capacity PRIMARY KEY (market, pool),
	CONSTRAINT ck_capacity_is_there CHECK (is_there IN (0, 1)),
	CONSTRAINT ck_capacity_is_begun CHECK (is_begun IN (0, 1)),
	CONSTRAINT ck_capacity_price CHECK (price >= 0),
	CONSTRAINT ck_capacity_looks CHECK (looks >= 0)
);

CREATE TABLE progress (
	workload TEXT COLLATE "C" NOT NULL,
	hours DOUBLE PRECISION NOT NULL,
	told_at BIGINT NOT NULL,
	since BIGINT NOT NULL,
	source TEXT COLLATE "C" NOT NULL,
	lease_id TEXT COLLATE "C" NOT NULL,
	number DOUBLE PRECISION,
	CONSTRAINT pk_progress PRIMARY KEY (workload),
	CONSTRAINT ck_progress_hours CHECK (hours >= 0)
);

CREATE TABLE speeds (
	workload TEXT COLLATE "C" NOT NULL,
	gpu TEXT COLLATE "C" NOT NULL,
	hours DOUBLE PRECISION NOT NULL,
	running_hours DOUBLE PRECISION NOT NULL,
	CONSTRAINT pk_speeds PRIMARY KEY (workload, gpu),
	CONSTRAINT ck_speeds_hours CHECK (hours >= 0),
	CONSTRAINT ck_speeds_running_hours CHECK (running_hours >= 0)
);

CREATE TABLE decisions (
	decision_id BIGINT GENERATED BY DEFAULT AS IDENTITY,
	at BIGINT NOT NULL,
	workload TEXT COLLATE "C" NOT NULL,
	slot BIGINT NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,
	code TEXT COLLATE "C" NOT NULL,
	sentence TEXT COLLATE "C" NOT NULL,
	limit_name TEXT COLLATE "C" NOT NULL,
	options TEXT COLLATE "C" NOT NULL,
	lease_id TEXT COLLATE "C" NOT NULL,
	offer_id TEXT COLLATE "C" NOT NULL,
	bid BIGINT,
	rate BIGINT,
	strategy TEXT COLLATE "C" NOT NULL,
	strategy_file TEXT COLLATE "C" NOT NULL,
	params_digest TEXT COLLATE "C" NOT NULL,
	CONSTRAINT pk_decisions PRIMARY KEY (decision_id),
	CONSTRAINT ck_decisions_slot CHECK (slot >= 0),
	CONSTRAINT ck_decisions_bid CHECK (bid >= 0),
	CONSTRAINT ck_decisions_rate CHECK (rate >= 0)
);

CREATE INDEX ix_decisions_slot ON decisions (workload, slot, decision_id);

CREATE TABLE shadows (
	workload TEXT COLLATE "C" NOT NULL,
	strategy TEXT COLLATE "C" NOT NULL,
	since BIGINT NOT NULL,
	seen_at BIGINT NOT NULL,
	spent BIGINT NOT NULL,
	live_spent BIGINT NOT NULL,
	paid BIGINT NOT NULL,
	useful BIGINT NOT NULL,
	lost BIGINT NOT NULL,
	live_paid BIGINT NOT NULL,
	live_useful BIGINT NOT NULL,
	live_lost BIGINT NOT NULL,
	interruptions BIGINT NOT NULL,
	starts BIGINT NOT NULL,
	rents BIGINT NOT NULL,
	position BYTEA NOT NULL,
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
);

CREATE TABLE shadow_decisions (
	decision_id BIGINT GENERATED BY DEFAULT AS IDENTITY,
	at BIGINT NOT NULL,
	workload TEXT COLLATE "C" NOT NULL,
	strategy TEXT COLLATE "C" NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,
	code TEXT COLLATE "C" NOT NULL,
	sentence TEXT COLLATE "C" NOT NULL,
	host_id TEXT COLLATE "C" NOT NULL,
	slot BIGINT NOT NULL,
	CONSTRAINT pk_shadow_decisions PRIMARY KEY (decision_id),
	CONSTRAINT ck_shadow_decisions_slot CHECK (slot >= 0)
);

CREATE INDEX ix_shadow_decisions_shadow ON shadow_decisions (workload, strategy, decision_id);

CREATE TABLE guard_runs (
	workload TEXT COLLATE "C" NOT NULL,
	slot BIGINT NOT NULL,
	run BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	spec_digest TEXT COLLATE "C" NOT NULL,
	begun_at BIGINT NOT NULL,
	CONSTRAINT pk_guard_runs PRIMARY KEY (workload, slot, run)
);

CREATE TABLE guard_figures (
	lease_id TEXT COLLATE "C" NOT NULL,
	workload TEXT COLLATE "C" NOT NULL,
	slot BIGINT NOT NULL,
	market TEXT COLLATE "C" NOT NULL,
	host_id TEXT COLLATE "C" NOT NULL,
	run BIGINT NOT NULL,
	stretch BIGINT NOT NULL,
	told_at BIGINT NOT NULL,
	progress DOUBLE PRECISION,
	manifest TEXT COLLATE "C" NOT NULL,
	kept_at BIGINT,
	checkpoint_bytes BIGINT,
	took_seconds DOUBLE PRECISION,
	upload_seconds DOUBLE PRECISION,
	restore_seconds DOUBLE PRECISION,
	CONSTRAINT pk_guard_figures PRIMARY KEY (lease_id),
	CONSTRAINT ck_guard_figures_slot CHECK (slot >= 0),
	CONSTRAINT ck_guard_figures_run CHECK (run >= 0),
	CONSTRAINT ck_guard_figures_stretch CHECK (stretch >= 0),
	CONSTRAINT ck_guard_figures_checkpoint_bytes CHECK (checkpoint_bytes >= 0),
	CONSTRAINT ck_guard_figures_took_seconds CHECK (took_seconds >= 0),
	CONSTRAINT ck_guard_figures_upload_seconds CHECK (upload_seconds >= 0),
	CONSTRAINT ck_guard_figures_restore_seconds CHECK (restore_seconds >= 0)
);

CREATE TABLE guard_notices (
	lease_id TEXT COLLATE "C" NOT NULL,
	lost_at BIGINT NOT NULL,
	market TEXT COLLATE "C" NOT NULL,
	sigterm_seen BIGINT NOT NULL,
	seconds DOUBLE PRECISION NOT NULL,
	told_at BIGINT NOT NULL,
	CONSTRAINT pk_guard_notices PRIMARY KEY (lease_id, lost_at),
	CONSTRAINT ck_guard_notices_sigterm_seen CHECK (sigterm_seen IN (0, 1)),
	CONSTRAINT ck_guard_notices_seconds CHECK (seconds >= 0)
);

CREATE TABLE host_checks (
	lease_id TEXT COLLATE "C" NOT NULL,
	market TEXT COLLATE "C" NOT NULL,
	host_id TEXT COLLATE "C" NOT NULL,
	owner_id TEXT COLLATE "C" NOT NULL,
	gpu TEXT COLLATE "C" NOT NULL,
	gpus BIGINT NOT NULL,
	dlperf DOUBLE PRECISION NOT NULL,
	checked_at BIGINT NOT NULL,
	matmul_tflops DOUBLE PRECISION,
	copy_to_gpu_gbps DOUBLE PRECISION,
	copy_from_gpu_gbps DOUBLE PRECISION,
	disk_write_mbps DOUBLE PRECISION,
	power_share DOUBLE PRECISION,
	seen_gpus BIGINT,
	seen_gpu TEXT COLLATE "C",
	defect TEXT COLLATE "C",
	script TEXT COLLATE "C",
	pcie_generation BIGINT,
	pcie_width BIGINT,
	pcie_share DOUBLE PRECISION,
	clock_events BIGINT,
	CONSTRAINT pk_host_checks PRIMARY KEY (lease_id),
	CONSTRAINT ck_host_checks_gpus CHECK (gpus >= 0),
	CONSTRAINT ck_host_checks_dlperf CHECK (dlperf >= 0)
);

CREATE TABLE signs_of_life (
	endpoint TEXT COLLATE "C" NOT NULL,
	bucket TEXT COLLATE "C" NOT NULL,
	prefix TEXT COLLATE "C" NOT NULL,
	folder TEXT COLLATE "C" NOT NULL,
	due_at BIGINT NOT NULL,
	written_at BIGINT,
	absent_until BIGINT,
	CONSTRAINT pk_signs_of_life PRIMARY KEY (endpoint, bucket, prefix, folder)
);

CREATE TABLE looks (
	market TEXT COLLATE "C" NOT NULL,
	at BIGINT NOT NULL,
	slices TEXT COLLATE "C" NOT NULL,
	CONSTRAINT pk_looks PRIMARY KEY (market, at)
);

CREATE TABLE slices (
	market TEXT COLLATE "C" NOT NULL,
	host_id TEXT COLLATE "C" NOT NULL,
	gpus BIGINT NOT NULL,
	seen_at BIGINT NOT NULL,
	facts TEXT COLLATE "C" NOT NULL,
	CONSTRAINT pk_slices PRIMARY KEY (market, host_id, gpus)
);
