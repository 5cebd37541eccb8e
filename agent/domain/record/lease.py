"""A lease: our durable record of capacity we pay for, and the transitions it may make."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE, UsdPerHour
from agent.domain.work.workload import Slot


class LeaseState(Enum):
    """The state of a lease, as far as we know."""

    STARTING = "starting"
    """Rented or resumed; the instance does not run yet."""
    RUNNING = "running"
    PAUSED = "paused"
    """It does not run, its disk is kept and billed."""
    EXITED = "exited"
    """The container ended although the GPU is held."""
    OFFLINE = "offline"
    MISSING = "missing"
    """Not in the last complete listing; it counts as spend until the market proves it gone."""
    RELEASING = "releasing"
    """We want it gone; it is released again and again until the market confirms it."""
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
    # A release is a promise: only the market's word that it is gone may end it.
    LeaseState.RELEASING: frozenset({LeaseState.ENDED}),
    LeaseState.ENDED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Lease:
    """Capacity we pay for.

    `gpu_rate` while running, `disk_rate` in every state but offline; both where the market leaves doubt. `bills` is
    what is charged since `accrued_until`, which is how far its cost stands in the ledger. `paused_by_us` tells our own
    pause from a loss. `recent_bids` are bids we made on it lately, newest first: the market echoes them as its floor;
    `bid_since` is when we last changed it. `rival_floor` is what a rival bid when we last lost it. `has_failed` marks
    a start that came to nothing, or an instance that is not what we asked for. `run_since` is when the present stretch
    of running began. A held lease is metered and never acted on until a person adopts or releases it. `ready_since` is
    when its present stretch of running became useful, where the workload tells; `was_ready` whether any stretch did;
    `runs` counts the stretches; `idle_since` is since when its GPUs do nothing. `ssh_address` and `ports`
    ("8080/tcp=1.2.3.4:41234", space between two) are where it was last reached. `agreed_rate` is what its GPUs were
    agreed to cost; `doubted_rate` is a listed rate that is not believed yet, listed `doubted_listings` times since
    `doubted_since`. `proven_at` is when two answers of the market, one of them a look by its id, had shown our label on
    it; `estranged_since` is since when the market shows another label or none; `vouched_at` is when a person said that
    it is ours all the same.
    """

    lease_id: str
    market: str
    instance_id: str
    slot: Slot
    tenure: Tenure
    state: LeaseState
    host_id: str
    owner_id: str
    offer_id: str
    gpu: GpuModel
    gpus: int
    dlperf: float
    gpu_rate: UsdPerHour
    disk_rate: UsdPerHour
    disk_gb: float
    opened_at: datetime
    state_since: datetime
    bills: Bills
    accrued_until: datetime
    intent_id: str
    ask: UsdPerHour | None = None
    host_floor: UsdPerHour | None = None
    ends_at: datetime | None = None
    has_run: bool = False
    has_failed: bool = False
    run_since: datetime | None = None
    is_held: bool = False
    paused_by_us: bool = False
    interrupted_by: Cause | None = None
    rival_floor: UsdPerHour | None = None
    recent_bids: tuple[UsdPerHour, ...] = ()
    bid_since: datetime | None = None
    traffic_down_gb: float = 0.0
    traffic_up_gb: float = 0.0
    ended_at: datetime | None = None
    end_reason: str = ""
    spec_digest: str = ""
    ready_since: datetime | None = None
    was_ready: bool = False
    runs: int = 0
    idle_since: datetime | None = None
    ssh_address: str = ""
    ports: str = ""
    agreed_rate: UsdPerHour | None = None
    doubted_rate: UsdPerHour | None = None
    doubted_since: datetime | None = None
    doubted_listings: int = 0
    proven_at: datetime | None = None
    estranged_since: datetime | None = None
    vouched_at: datetime | None = None

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
        """Whether two answers showed its instance to be ours; until then nothing is written to it (rule 18)."""
        return self.proven_at is not None

    @property
    def is_estranged(self) -> bool:
        """Whether the market shows another label than ours, or none, on a proven instance."""
        return self.estranged_since is not None

    @property
    def billing_rate(self) -> UsdPerHour:
        """Its hourly cost, as far as the market has shown."""
        if self.bills is Bills.NOTHING:
            return FREE
        return self.gpu_rate + self.disk_rate if self.bills is Bills.GPU_AND_DISK else self.disk_rate

    @property
    def committed_rate(self) -> UsdPerHour:
        """The most that it may cost per hour without another order: a start counts as running, a loss as back."""
        if not self.is_open:
            return FREE
        is_stopped = self.paused_by_us and self.bills is not Bills.GPU_AND_DISK
        return self.disk_rate if is_stopped else self.gpu_rate + self.disk_rate

    @property
    def began(self) -> datetime:
        """Since when it runs, or starts."""
        return self.run_since or self.state_since

    @property
    def is_open(self) -> bool:
        """Whether it may still cost money."""
        return self.state is not LeaseState.ENDED

    @property
    def is_live(self) -> bool:
        """Whether it runs or starts."""
        return self.state in {LeaseState.STARTING, LeaseState.RUNNING}
