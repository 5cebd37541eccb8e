"""The nouns of this market: host, slice, contract, rival and notice."""

import dataclasses
import enum
import re
from collections.abc import Mapping

from agent.simulator.instances.container_state import Container, ContainerState

_PORT = re.compile(r"-p \d{1,5}:(\d{1,5})(/tcp)?")


class StopCause(enum.Enum):
    """Name why a contract lost or never got its GPUs. Only /truth and tests may show it; the vendor does not."""

    UNDERBID = "underbid"  # created below the floor
    OUTBID = "outbid"
    DISPLACED = "displaced"  # an on-demand renter took the GPUs
    FLOOR_RAISED = "floor_raised"  # the host raised its floor above the bid
    USER = "user"
    CREDIT = "credit"
    EXPIRED = "expired"
    RACE = "race"  # the create/start race: stopped until start is sent again
    PULL_FAILED = "pull_failed"


class EndCause(enum.Enum):
    """Name why a contract ceased to exist."""

    DESTROYED = "destroyed"
    HOST_GONE = "host_gone"
    EXPIRED = "expired"


class NoticeKind(enum.Enum):
    """The events that the market reports to its renter."""

    CREATED = "created"
    STARTED = "started"  # once per contract, when its container first runs
    STOPPED = "stopped"
    RESUMED = "resumed"
    OUTBID = "outbid"
    DELETED = "deleted"
    OFFLINE = "offline"
    ONLINE = "online"
    LOW_CREDIT = "low_credit"
    CONTAINER_ERROR = "container_error"
    MAINTENANCE = "maintenance"  # planned by the host
    UPCOMING_DOWNTIME = "upcoming_downtime"
    NEAR_END = "near_end"


@dataclasses.dataclass(frozen=True, slots=True)
class Gpu:
    """One model of GPU: the figures that every card of it shares."""

    name: str
    arch: str
    vram_mb: int
    compute_cap: int
    dlperf: float  # median of one card
    tflops: float
    memory_bw: float  # GB/s
    nvlink_bw: float  # GB/s, 0 without
    max_power: float  # W
    price: float  # median host price of one card, $/h, before the market's fee


@dataclasses.dataclass(slots=True)
class Host:
    """A host: its parts, its prices and whether it answers. Prices are those that a renter pays."""

    machine_id: int
    owner_id: int
    gpu: Gpu
    gpu_count: int
    first_gpu_id: int  # the fleet-wide id of the first card; the others follow
    ask_per_gpu: float  # $/h, before the price walk and the climate's spikes
    floor_per_gpu: float  # $/h, likewise
    storage_price: float  # $/GB/month
    up_price: float  # $/GB
    down_price: float  # $/GB
    inet_up: float  # Mb/s
    inet_down: float  # Mb/s
    reliability: float  # as advertised, 0-1
    true_reliability: float  # the reliability it really has, 0-1
    verification: str  # "verified", "unverified" or "deverified"
    is_datacenter: bool | None
    is_static_ip: bool
    geolocation: str  # "Texas, US", ", US", "Czechia, CZ"
    public_ip: str
    listed_since: float | None
    end_time: float  # when the host's listing, and every contract on it, ends
    dlperf_per_gpu: float
    tflops_per_gpu: float
    memory_bw: float  # GB/s of one card
    driver: str
    cuda: float
    cpu_name: str
    cpu_cores: int
    cpu_ghz: float
    ram_mb: int
    disk_gb: float
    disk_bw: float
    disk_name: str
    board: str
    os_version: str
    pci_gen: float
    pcie_bw: float
    pcie_lanes: int
    direct_ports: int
    has_avx: bool
    credit_discount: float
    churn: float = 0.0  # rivals that want some slice of it, per hour
    price_factor: float = 1.0  # the price walk
    offline_until: float | None = None  # None: online; inf: nobody knows
    is_gone: bool = False

    @property
    def is_online(self) -> bool:
        """Return whether the market hears from it."""
        return self.offline_until is None and not self.is_gone


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """An offer: some GPUs of a host under an id that never changes. No GPUs at all means disk only."""

    offer_id: int
    machine_id: int
    host: Host
    gpus: tuple[int, ...]  # indices on the host; slices of one host overlap

    @property
    def num_gpus(self) -> int:
        """Count its GPUs."""
        return len(self.gpus)

    @property
    def share(self) -> float:
        """Return the share of the host's GPUs, 0 for a disk-only slice."""
        return len(self.gpus) / self.host.gpu_count


@dataclasses.dataclass(slots=True, eq=False)
class Rival:
    """Hold another renter on a host. A bid of None rents on demand, which nothing displaces."""

    rival_id: int
    slice: Slice
    bid: float | None  # $/h for its whole slice
    since: float
    until: float  # when it leaves by itself; inf for one put there by hand
    is_running: bool = False
    is_ours: bool = False  # put there through the control API: waits instead of going elsewhere

    @property
    def is_bid(self) -> bool:
        """Return whether it can be displaced."""
        return self.bid is not None


@dataclasses.dataclass(frozen=True, slots=True)
class RentTerms:
    """The terms of a create besides its slice and its price."""

    disk_gb: float
    image: str
    label: str | None = None
    onstart: str | None = None
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    args: tuple[str, ...] = ()
    runtype: str = "ssh"
    template: str | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Contract(ContainerState):
    """The contract of one accepted create: a disk, a claim on GPUs, a container.

    `holds_gpu` is the control plane's state (the vendor's current state), `is_intended` the state that the control
    plane wants. `is_queued` is a start that waits for its GPUs. `wants_gpu` says whether the contract takes part in the
    auction.
    """

    contract_id: int
    slice: Slice
    host: Host
    bid: float | None  # standing bid, $/h for the slice; None is on demand
    locked_ask: float  # $/h for the slice when it was created
    disk_gb: float
    image: str
    label: str | None
    created: float
    end_time: float
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    args: tuple[str, ...] = ()
    runtype: str = "ssh"
    template: str | None = None
    discount: float = 0.0  # of its GPUs' price, bought by a deposit
    wants_gpu: bool = True
    is_intended: bool = False
    is_queued: bool = False
    is_underbid: bool = False  # the create itself was below the floor: the call answers with a refusal
    is_unknown: bool = False  # weather: the host's heartbeat is lost, the state unknown
    stop_cause: StopCause | None = None
    held_since: float | None = None
    stopped_since: float | None = None
    up_gb: float = 0.0
    end_cause: EndCause | None = None
    charged: dict[str, float] = dataclasses.field(
        default_factory=lambda: {"gpu": 0.0, "disk": 0.0, "bandwidth": 0.0}, kw_only=True
    )

    @property
    def is_bid(self) -> bool:
        """Return whether it is interruptible; False is on demand."""
        return self.bid is not None

    @property
    def ports(self) -> list[int]:
        """Return the container's ports that the create asks to open, from the `-p` entries of its environment."""
        matches = (_PORT.fullmatch(name) for name in self.env)
        return sorted({int(match[1]) for match in matches if match and 0 < int(match[1]) < 65536})  # noqa: PLR2004

    @property
    def status(self) -> str:
        """Return its present state in one of our own words."""
        if self.ended is not None:
            return "ended"
        if self.is_offline:
            return "offline"
        if self.holds_gpu:
            return "running" if self.container is Container.RUNNING else self._preparing()
        if self.is_queued:
            return "queued"
        return "stopped"

    def _preparing(self) -> str:
        if self.container is Container.NONE:
            return "loading"
        return str(self.container.value)


@dataclasses.dataclass(frozen=True, slots=True)
class Notice:
    """One event that the market reported to its renter."""

    event_id: str
    kind: NoticeKind
    at: float
    contract_id: int | None
    machine_id: int | None
    image: str = ""
    price: float | None = None  # the price charged, or the bid that was beaten
    new_floor: float | None = None  # for OUTBID: the winner's bid, or the ask
