"""A lease: our durable record of capacity we pay for, and the transitions it may make."""

from datetime import datetime
from enum import Enum

import msgspec

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE, UsdPerHour
from agent.domain.slot import Slot


class LeaseState(Enum):
    """The state of a lease, as far as we know."""

    STARTING = "starting"
    """Rented or resumed; the instance does not run yet."""
    RUNNING = "running"
    PAUSED = "paused"
    """It does not run; its disk is kept and billed."""
    EXITED = "exited"
    """The container ended, but the instance still has the GPU."""
    OFFLINE = "offline"
    MISSING = "missing"
    """The last complete listing lacks it. It counts as spend until the market proves it gone."""
    RELEASING = "releasing"
    """We ordered its release, and order it again until the market confirms it."""
    ENDED = "ended"


class Bills(Enum):
    """The charges of a lease now, as far as the market has shown."""

    GPU_AND_DISK = "gpu_and_disk"
    DISK = "disk"
    NOTHING = "nothing"


ALLOWED: dict[LeaseState, frozenset[LeaseState]] = {
    state: frozenset(LeaseState) - {state}
    for state in LeaseState
    if state not in {LeaseState.RELEASING, LeaseState.ENDED}
} | {
    # A release is a promise: the market's statement that the instance is gone ends it. Only one that has not left is
    # called off, where its lease runs again for its slot.
    LeaseState.RELEASING: frozenset({LeaseState.ENDED, LeaseState.RUNNING}),
    LeaseState.ENDED: frozenset(),
}


class Lease(msgspec.Struct, frozen=True):
    """Capacity that we pay for.

    A struct, because each cycle replaces every lease several times, and replacing a dataclass of so many fields takes a
    hundred times as long.
    """

    lease_id: str
    """Its id in the ledger."""
    market: str
    """The market on which it is rented."""
    instance_id: str
    """The market's id of the instance."""
    slot: Slot
    """The slot that it fills, or was labelled for."""
    tenure: Tenure
    """Its tenure."""
    state: LeaseState
    """Its state as far as known."""
    host_id: str
    """The market's id of its host."""
    owner_id: str
    """The market's id of the host's owner; empty if unknown."""
    offer_id: str
    """The offer that it was rented from."""
    gpu: GpuModel
    """The model of its GPUs."""
    gpus: int
    """How many GPUs it has."""
    dlperf: float
    """The market's benchmark of them together."""
    gpu_rate: UsdPerHour
    """The rate of its GPUs while it runs, or may run as far as the market shows: the price paid, never a limit."""
    disk_rate: UsdPerHour
    """The rate of its disk, in every state except offline."""
    disk_gb: float
    """The size of its disk."""
    opened_at: datetime
    """When it was rented."""
    state_since: datetime
    """When its present state began."""
    bills: Bills
    """The kind of billing since `accrued_until`."""
    accrued_until: datetime
    """The time up to which the ledger has its cost."""
    intent_id: str
    """The rent that made it."""
    ask: UsdPerHour | None = None
    """The host's on-demand price, as last seen."""
    host_floor: UsdPerHour | None = None
    """The lowest bid that would run at once, as last seen."""
    ends_at: datetime | None = None
    """When its host leaves the market, if the market reports it."""
    has_run: bool = False
    """Whether it ever ran."""
    has_failed: bool = False
    """Whether its start failed, or the instance is not as ordered."""
    run_since: datetime | None = None
    """When the present stretch of running began."""
    is_held: bool = False
    """Whether it is only metered until a person adopts or releases it."""
    paused_by_us: bool = False
    """Whether our own pause stopped it, not a loss."""
    interrupted_by: Cause | None = None
    """The cause of its loss, while it is lost."""
    rival_floor: UsdPerHour | None = None
    """The rival's bid at our last loss."""
    recent_bids: tuple[UsdPerHour, ...] = ()
    """Our recent bids on it, newest first, since the market echoes them as its floor. Where the price paid is not the
    bid: the limit of our last order, while the market shows a higher one."""
    bid_since: datetime | None = None
    """When we last changed its bid."""
    traffic_down_gb: float = 0.0
    """Downloaded gigabytes that the ledger has counted so far."""
    traffic_up_gb: float = 0.0
    """Uploaded gigabytes that the ledger has counted so far."""
    ended_at: datetime | None = None
    """When it ended; None while it is open."""
    end_reason: str = ""
    """Why it failed or ended: a code, which may be followed by the market's text."""
    spec_digest: str = ""
    """The digest of the image, GPU and disk that it was rented for."""
    ready_since: datetime | None = None
    """When its present stretch of running became useful, if the workload shows that."""
    was_ready: bool = False
    """Whether any stretch of running became useful."""
    runs: int = 0
    """The number of its stretches of running."""
    idle_since: datetime | None = None
    """Since when its GPUs are idle."""
    ssh_address: str = ""
    """The last known address of a shell on it."""
    ports: str = ""
    """The last known addresses of its ports: "8080/tcp=1.2.3.4:41234", with a space between two."""
    agreed_rate: UsdPerHour | None = None
    """The agreed rate of its GPUs; None: `gpu_rate`."""
    doubted_rate: UsdPerHour | None = None
    """A listed rate that is not believed yet."""
    agreed_until: datetime | None = None
    """While another rate is doubted: the agreed rate was last listed this much billed GPU time before
    `accrued_until`."""
    doubted_since: datetime | None = None
    """Since when the doubted rate is listed."""
    doubted_listings: int = 0
    """The number of listings that have shown the doubted rate."""
    proven_at: datetime | None = None
    """When two answers of the market, one of them a look by its id, had shown our label on the instance."""
    estranged_since: datetime | None = None
    """Since when the market shows another label on it, or none."""
    vouched_at: datetime | None = None
    """When a person confirmed that it is ours, whatever its label shows."""
    guard_run: int | None = None
    """The slot's run that its guard was started for, if it has a guard."""
    read_back_at: datetime | None = None
    """When a complete listing first showed it on the terms of its order. A later difference is a change."""
    checkpoint_asked_at: datetime | None = None
    """When its guard was last asked for a checkpoint before an ending of our own."""
    guard_terms: str | None = None
    """The terms that its guard was given at the rent, as JSON (`kept_terms.py` of the domain)."""
    checkpoint_taken_at: datetime | None = None
    """When the last checkpoint on its paused disk was taken; None: unknown."""
    checkpoint_verified_at: datetime | None = None
    """When the bucket was last found to have that checkpoint, or a later one, whole. It counts for the present
    pause."""

    vram_mb: int | None = None
    """The memory of one GPU that its offer promised; None: not recorded."""
    loading_since: datetime | None = None
    """The time from which its start has loaded, if that differs from `state_since`: later by the time since then that
    does not count, while its host was silent or its market was not listed (`loading_time.py`). A missing lease has it
    if it loaded before."""
    stop_seen_at: datetime | None = None
    """When a listing first showed it stopped, while that waits to be judged."""
    maintenance_told_at: datetime | None = None
    """When a notice of its host's maintenance was last read."""
    maintenance_begins_at: datetime | None = None
    """When that maintenance begins, if the market names it."""
    maintenance_ends_at: datetime | None = None
    """As above, when it ends."""
    failed_probes: int = 0
    """The number of probes in a row that its service, which was ready, has not answered."""
    probe_failed_at: datetime | None = None
    """When the last of them began."""
    unhealthy_since: datetime | None = None
    """Since when its service is unhealthy; None while it answers or was not ready yet."""
    restarts: int = 0
    """How often it was started again because its service was unhealthy or ended, or its work stalled, without long
    health since."""
    restart_at: datetime | None = None
    """When its last such restart was decided, or its stop confirmed. It is due until a stretch of running begins after
    it, or another order stops the lease."""
    ran_micros: int = 0
    """How long it ran since it first was ready, in microseconds, up to `accrued_until`."""
    stalled_since: datetime | None = None
    """Since when its work shows no progress, later by the time in which that could not be seen; None: not stalled."""
    stalled_at: datetime | None = None
    """When it was last found without progress for `stalled_after`, and something was done about that."""

    label_intent_id: str = ""
    """The rent whose label its instance has, if another lease had the instance before; empty: `intent_id`."""
    keys_seen_at: datetime | None = None
    """When the market first showed all public keys of its workload on it, in the run that then went on."""
    bid_limit: UsdPerHour | None = None
    """Our bid where the price paid is not the bid; None elsewhere. `gpu_rate` is the expected price before it runs."""
    notice_at: datetime | None = None
    """When the market ends it, if the market has said so."""
    egress_micros_per_gb: int = 0
    """What a gigabyte that leaves its host costs, in micro-dollars, as the offer said."""

    @property
    def may_have_worked(self) -> bool:
        """Whether it was ready in any stretch of running, or ran while its workload had no sign of readiness."""
        return self.was_ready or self.ran_micros > 0

    @property
    def bid(self) -> UsdPerHour:
        """The bid for its GPUs; on demand, their rate."""
        return self.gpu_rate if self.bid_limit is None else self.bid_limit

    @property
    def own_bid(self) -> UsdPerHour:
        """The bid of our last order. `bid` is higher if the market shows a higher limit, whoever set it."""
        return min(self.bid, *self.recent_bids[:1]) if self.bid_limit is not None and self.recent_bids else self.bid

    @property
    def most_gpu_rate(self) -> UsdPerHour:
        """The most that its GPUs may cost per hour without another order."""
        return max(self.gpu_rate, self.bid)

    @property
    def is_open_bid(self) -> bool:
        """Whether it waits for an auction: it costs no GPU now, and may start and bill at any auction."""
        return self.bid_limit is not None and self.may_start

    @property
    def is_queued_bid(self) -> bool:
        """Whether it waits for its first machine: a start that only the market still has to make."""
        return self.is_open_bid and not self.has_run

    @property
    def is_parked_bid(self) -> bool:
        """Whether we took it out of the auctions before it ever ran: nothing of it exists, or starts by itself."""
        is_stopped = self.state is LeaseState.PAUSED and self.paused_by_us and self.bills is not Bills.GPU_AND_DISK
        return self.bid_limit is not None and is_stopped and not self.has_run

    @property
    def has_keys(self) -> bool:
        """Whether the market has shown all public keys of its workload on it since its present run began."""
        return self.keys_seen_at is not None and (self.run_since is None or self.keys_seen_at >= self.run_since)

    @property
    def is_reassigned(self) -> bool:
        """Whether its instance was rented for another slot, and goes on with this one."""
        return bool(self.label_intent_id)

    @property
    def label_id(self) -> str:
        """The id of the rent that the label of its instance has; empty if that is not known."""
        return self.label_intent_id or self.intent_id

    @property
    def agreed(self) -> UsdPerHour:
        """The agreed rate of its GPUs: our bid, or on demand the rate of the rent."""
        return self.gpu_rate if self.agreed_rate is None else self.agreed_rate

    @property
    def host(self) -> HostKey:
        """The host, with its market."""
        return HostKey(self.market, self.host_id)

    @property
    def owner(self) -> OwnerKey:
        """The owner of the host, with its market."""
        return OwnerKey(self.market, self.owner_id)

    @property
    def is_proven(self) -> bool:
        """Whether two answers showed that its instance is ours. Until then nothing is written to it (rule 18)."""
        return self.proven_at is not None

    @property
    def is_estranged(self) -> bool:
        """Whether the market shows another label than ours, or none, on a proven instance."""
        return self.estranged_since is not None

    @property
    def billing_rate(self) -> UsdPerHour:
        """Its present hourly cost, as far as the market has shown."""
        if self.bills is Bills.NOTHING:
            return FREE
        return self.gpu_rate + self.disk_rate if self.bills is Bills.GPU_AND_DISK else self.disk_rate

    @property
    def committed_rate(self) -> UsdPerHour:
        """Its highest hourly cost without another order: a start counts as running, a lost lease as back."""
        if not self.is_open:
            return FREE
        is_stopped = self.paused_by_us and self.bills is not Bills.GPU_AND_DISK
        return self.disk_rate if is_stopped else self.most_gpu_rate + self.disk_rate

    @property
    def began(self) -> datetime:
        """When its present run or start began."""
        return self.run_since or self.state_since

    @property
    def loads_since(self) -> datetime | None:
        """The time from which its start has loaded, without silences; None if it does not load."""
        return self.loading_since or (self.state_since if self.state is LeaseState.STARTING else None)

    @property
    def is_open(self) -> bool:
        """Whether it may still cost money."""
        return self.state is not LeaseState.ENDED

    @property
    def is_down(self) -> bool:
        """Whether it bills at most its disk and will not start by itself.

        One that we did not pause may start: the market may have queued its start, or may give it back.
        What we paused on a silent host stays so: once it answers and shows the lease at work, we have not paused it.
        """
        if self.state is LeaseState.OFFLINE:
            return self.paused_by_us and self.bills is not Bills.GPU_AND_DISK
        return self.state is LeaseState.PAUSED and self.paused_by_us

    @property
    def may_start(self) -> bool:
        """Whether it is paused and may start by itself: we did not stop it, or our start of it is queued."""
        return self.state is LeaseState.PAUSED and not self.paused_by_us

    @property
    def is_in_run(self) -> bool:
        """Whether a stretch of running goes on as far as known, also while the market does not list the lease."""
        return self.state is LeaseState.RUNNING or (self.state is LeaseState.MISSING and self.run_since is not None)

    @property
    def is_live(self) -> bool:
        """Whether it runs or starts."""
        return self.state in {LeaseState.STARTING, LeaseState.RUNNING}
