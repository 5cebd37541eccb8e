"""A workload: what must run, on which GPUs, and what an interruption costs it."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from agent.domain.market.gpu import GpuModel
from agent.domain.money import UsdPerHour
from agent.domain.work.deadline import Deadline
from agent.domain.work.ready_sign import Readiness


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """One place of a workload; a slot has one lease, and two only while it moves."""

    workload: str
    index: int

    def __str__(self) -> str:
        return f"{self.workload}/{self.index}"


class WorkloadKind(Enum):
    """Whether a workload ends by itself."""

    BATCH = "batch"
    """It ends some day; a stop without a known cause may be that end."""
    SERVICE = "service"
    """It runs until a person stops it."""


class OnChange(Enum):
    """What happens to a running lease whose workload now asks for another image, GPU or disk."""

    KEEP = "keep"
    MOVE = "move"


class Runtype(Enum):
    """How the container starts."""

    AUTO = "auto"
    """By its command if it has one, else with a shell."""
    ARGS = "args"
    SSH = "ssh"
    SSH_DIRECT = "ssh_direct"
    JUPYTER = "jupyter"


@dataclass(frozen=True, slots=True)
class ImageLogin:
    """The login for a private image; `credential` names the password, which is stored nowhere."""

    registry: str
    user: str
    credential: str


class CheckpointPlace(Enum):
    """The place of the checkpoints."""

    DISK = "disk"
    REMOTE = "remote"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The workload's checkpoints.

    `interval` between two checkpoints, `restore` from container start to useful work, `size_gb` fetched on a new host.
    `takes` is how long the workload stands still to make one, where that is known.
    """

    interval: timedelta = timedelta(minutes=15)
    restore: timedelta = timedelta(seconds=60)
    size_gb: float = 0.0
    place: CheckpointPlace = CheckpointPlace.DISK
    takes: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirements of an offer; an empty tuple or None requires nothing.

    A host that leaves the market sooner than `min_end_ahead` is not worth the loading.
    `min_vram_mb` is per GPU. `query` holds extra filters as (field, operator, value) in the market's own search
    grammar, already checked by the adapter that will send them.
    """

    gpus: int = 1
    gpu_models: tuple[GpuModel, ...] = ()
    min_vram_mb: int | None = None
    min_reliability: float | None = None
    verified_only: bool = True
    regions: tuple[str, ...] = ()
    min_inet_down_mbps: float | None = None
    min_end_ahead: timedelta = timedelta(hours=2)
    query: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """What must run. `max_price` is the most that one slot may cost per hour, with disk.

    A batch is done when its container exits, when `done_line` stands in its log where that is given, or when a person
    says so. After `max_fast_exits` exits right after the start, on as many hosts, or `max_failed_starts` failed starts
    in a day, it is held: what fails everywhere is not the hosts' fault. `env_from` gives variables the value of a
    credential by its name. At most `max_per_owner` of its slots stand on hosts of one owner. `was` is its old name;
    of two workloads the one of higher `priority` is paused last. It may run on `markets`, on any where that is empty.
    `dataset_gb` of data are fetched on every new host. `shadow` names strategies that decide beside the live one and
    spend nothing.
    """

    name: str
    image: str
    max_price: UsdPerHour
    strategy: str
    requirements: Requirements
    markets: tuple[str, ...] = ()
    slots: int = 1
    disk_gb: float = 20.0
    image_gb: float = 5.0
    command: str = ""
    onstart: str = ""
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    checkpoint: Checkpoint = Checkpoint()
    may_lose_disk: bool = False
    kind: WorkloadKind = WorkloadKind.SERVICE
    done_line: str = ""
    max_fast_exits: int = 3
    max_failed_starts: int = 12
    ports: tuple[int, ...] = ()
    runtype: Runtype = Runtype.AUTO
    ssh_keys: tuple[str, ...] = ()
    image_login: ImageLogin | None = None
    env_from: tuple[tuple[str, str], ...] = ()
    template: str = ""
    max_per_owner: int | None = None
    on_change: OnChange = OnChange.KEEP
    was: str = ""
    priority: int = 0
    ready: Readiness = field(default_factory=Readiness)
    dataset_gb: float = 0.0
    deadline: Deadline | None = None
    shadow: tuple[str, ...] = ()

    def may_use(self, market: str) -> bool:
        """Return whether it may use a market."""
        return not self.markets or market in self.markets

    @property
    def is_probed(self) -> bool:
        """Whether its instances must be probed: for readiness, its end or its progress."""
        tells = self.deadline is not None and self.deadline.is_asked
        return self.ready.is_asked or self.kind is WorkloadKind.BATCH or tells

    @property
    def moved_gb(self) -> float:
        """Gigabytes that a new host fetches: image, dataset, and a checkpoint that is kept elsewhere."""
        kept = self.checkpoint.size_gb if self.checkpoint.place is CheckpointPlace.REMOTE else 0.0
        return self.image_gb + self.dataset_gb + kept

    @property
    def credentials(self) -> tuple[str, ...]:
        """The names of the credentials that its rent needs."""
        login = (self.image_login.credential,) if self.image_login is not None else ()
        return (*login, *(name for _, name in self.env_from))

    @property
    def places(self) -> tuple[Slot, ...]:
        """All slots of the workload, in order."""
        return tuple(Slot(self.name, index) for index in range(self.slots))
