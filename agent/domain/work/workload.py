"""A workload: the work that must run, its GPUs, and its cost of an interruption."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

import msgspec

from agent.domain.market.gpu import GpuModel
from agent.domain.money import FREE, UsdPerHour
from agent.domain.slot import Slot
from agent.domain.slot_demand import Demand
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.deadline import Deadline
from agent.domain.work.guard_terms import GuardTerms
from agent.domain.work.idle_rule import IdleRule
from agent.domain.work.ready_sign import Readiness
from agent.domain.work.run_times.run_window import Outside, WindowRule
from agent.domain.work.run_times.running_limit import RunningLimit
from agent.domain.work.stall import StallRule


@dataclass(frozen=True, slots=True)
class Fallback:
    """Markets that a workload uses only once a slot has been down for `after`."""

    markets: tuple[str, ...] = ()
    after: timedelta = timedelta(minutes=10)


class WorkloadKind(Enum):
    """Whether a workload ends by itself."""

    BATCH = "batch"
    """It ends by itself; a stop without a known cause may be that end."""
    SERVICE = "service"
    """It runs until a person stops it."""


class OnChange(Enum):
    """The treatment of a running lease whose workload now requires another image, GPU or disk."""

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
    """The workload's checkpoints."""

    interval: timedelta = timedelta(minutes=15)
    """The time between two checkpoints."""
    restore: timedelta = timedelta(seconds=60)
    """The time from the start of the container to useful work."""
    size_gb: float = 0.0
    """Gigabytes of a checkpoint to download on a new host."""
    place: CheckpointPlace = CheckpointPlace.DISK
    """The place where they are kept."""
    takes: timedelta | None = None
    """How long the workload stops to make a checkpoint, if known."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirements of an offer; an empty tuple or None requires nothing."""

    gpus: int = 1
    """The exact number of GPUs."""
    gpu_models: tuple[GpuModel, ...] = ()
    """The accepted models; empty accepts any."""
    min_vram_mb: int | None = None
    """Memory per GPU."""
    min_reliability: float | None = None
    """Advertised reliability from 0 to 1."""
    verified_only: bool = True
    """Whether the market must have verified the host."""
    network_volume: str = ""
    """The market's id of the network volume that is mounted; empty: none."""
    datacenter_only: bool = False
    """Whether the market must say that the host is in a data centre."""
    regions: tuple[str, ...] = ()
    """The accepted countries or regions; empty accepts any."""
    min_inet_down_mbps: float | None = None
    min_end_ahead: timedelta = timedelta(hours=2)
    """The least time before a host leaves the market; a shorter stay is not worth the loading."""
    query: str = ""
    """Extra filters in the market's own search grammar, checked by the adapter that will send them."""


class MaxPrice(msgspec.Struct, frozen=True):
    """The highest hourly cost of one slot with its disk, for any GPU model; some models have their own."""

    others: UsdPerHour
    """The price of models without their own."""
    by_gpu: tuple[tuple[GpuModel, UsdPerHour], ...] = ()

    @property
    def highest(self) -> UsdPerHour:
        """The highest of all prices."""
        return max([self.others, *(price for _, price in self.by_gpu)])

    def of(self, model: GpuModel) -> UsdPerHour:
        """Return the most that a slot may cost on a model."""
        return next((price for named, price in self.by_gpu if named == model), self.others)

    def at_speed(self, model: GpuModel, speed: float) -> UsdPerHour:
        """Return the worth of an hour on a model: its own price unchanged, or the common price times `speed`."""
        return next((price for named, price in self.by_gpu if named == model), self.others.scaled(speed))

    def scaled(self, share: float) -> "MaxPrice":
        """Return every price times `share`."""
        return MaxPrice(self.others.scaled(share), tuple((model, price.scaled(share)) for model, price in self.by_gpu))

    def __str__(self) -> str:
        own = ", ".join(f"{model} {price}" for model, price in self.by_gpu)
        return f"{self.others} or less ({own})" if own else f"{self.others} or less"


@dataclass(frozen=True, slots=True)
class Workload:
    """Work that must run.

    A batch is done when its container exits, when its log has `done_line` if that is given, or when a person says so.
    Failures on many hosts are not the hosts' fault: after too many of them the workload is held.
    """

    name: str
    """Its name in the configuration."""
    image: str
    """The container image."""
    max_price: UsdPerHour
    """The most that one slot may cost per hour, with its disk."""
    strategy: str
    """The strategy that decides for it."""
    requirements: Requirements
    """The requirements of an offer."""
    markets: tuple[str, ...] = ()
    """The markets on which it may run; empty: any."""
    fallback: Fallback = Fallback()
    """The markets that it may use once a slot has been down for a while."""
    slots: int = 1
    """The number of its slots."""
    disk_gb: float = 20.0
    """The disk that each slot is rented with."""
    image_gb: float = 5.0
    """Gigabytes of the image as pulled."""
    command: str = ""
    """The command that the container runs instead of its own entry point; empty: its own."""
    onstart: str = ""
    """A shell script that runs when the instance starts."""
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Variables and their values."""
    values: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)
    """Variables with a value of each slot, by its number."""
    checkpoint: Checkpoint = Checkpoint()
    """The making and keeping of its checkpoints."""
    may_lose_disk: bool = False
    """Whether a disk that may hold the only checkpoint may be given up."""
    kind: WorkloadKind = WorkloadKind.SERVICE
    """Whether it ends by itself."""
    done_line: str = ""
    """The line of its log that means that a batch is done."""
    max_fast_exits: int = 3
    """After this many exits right after the start, on as many hosts, it is held."""
    max_failed_starts: int = 12
    """After this many failed starts in a day it is held."""
    ports: tuple[int, ...] = ()
    """Ports of the container to open to the outside."""
    runtype: Runtype = Runtype.AUTO
    """The way in which the container is started."""
    ssh_keys: tuple[str, ...] = ()
    """The public keys that may log in."""
    image_login: ImageLogin | None = None
    """The login to pull a private image."""
    env_from: tuple[tuple[str, str], ...] = ()
    """Variables, each with the name of the credential that holds its value."""
    template: str = ""
    """The hash of a template of the market to start from."""
    max_per_owner: int | None = None
    """The most of its slots on hosts of one owner."""
    on_change: OnChange = OnChange.KEEP
    """The treatment of a running lease whose image, GPU or disk the configuration changes."""
    was: str = ""
    """Its old name."""
    priority: int = 0
    """Of two workloads, the one with the higher priority is paused last."""
    idle: IdleRule = field(default_factory=IdleRule)
    """What is done about idle GPUs."""
    max_running: tuple[RunningLimit, ...] = ()
    """The most time that it, or each of its leases, may run: at most one of each."""
    windows: tuple[WindowRule, ...] = ()
    """The times in which it may run; empty: it always may."""
    outside: Outside = Outside.PAUSE
    """What happens to its leases outside of them."""
    not_before: datetime | None = None
    """Nothing is rented for it before this instant."""
    stalled: StallRule = field(default_factory=StallRule)
    """What is done about work that shows no progress."""
    ready: Readiness = field(default_factory=Readiness)
    """The sign by which it shows that it is ready."""
    dataset_gb: float = 0.0
    """Gigabytes of data that every new host downloads."""
    deadline: Deadline | None = None
    """The deadline of its work, if it has one."""
    shadow: tuple[str, ...] = ()
    """Strategies that decide beside the live one and spend nothing."""
    max_price_by_gpu: tuple[tuple[GpuModel, UsdPerHour], ...] = ()
    """GPU models with a price of their own instead of `max_price`."""
    value_per_hour: UsdPerHour | None = None
    """What an hour of work in one slot is worth to its owner; None: the highest price of the GPU model."""
    value_share: float | None = None
    """The same as a share of the on-demand price; a plan turns it into `value_per_hour`."""
    network_volume_rate: UsdPerHour = FREE
    """What its network volume costs per hour, by its owner's figure; free if that is not known."""
    guard: GuardTerms | None = None
    """The settings of its guard, which carries checkpoints to a bucket; None without one."""
    array: ArrayTerms | None = None
    """How many of its slots are live at once, and in which order they begin; None: all slots, at once."""
    after: tuple[str, ...] = ()
    """The workloads that must be done before its slots begin."""
    demand: Demand | None = None
    """How many of its slots are wanted now; None: all."""
    unit: str = ""
    """The unit of the number that its work writes for its guard, such as "step"; empty: unnamed."""
    drain: timedelta = timedelta()
    """How long an ending of ours waits until its proxy has no request left at the lease; zero: it does not."""
    has_proxy: bool = False
    """Whether a proxy sends it its requests: a lease that it cannot reach serves nobody."""

    def is_reachable(self, *, opens_ports: bool, asks_pages: bool) -> bool:
        """Return whether it is of use where ports are opened or not, and a market asks pages itself or not."""
        is_reached = opens_ports or not self.has_proxy
        return is_reached and self.ready.is_reachable(opens_ports=opens_ports, asks_pages=asks_pages)

    @property
    def prices(self) -> MaxPrice:
        """The most that one slot may cost per hour, by GPU model."""
        return MaxPrice(self.max_price, self.max_price_by_gpu)

    def price_of(self, model: GpuModel) -> UsdPerHour:
        """Return the most that one slot may cost per hour on a GPU model."""
        return self.prices.of(model)

    def value_of(self, model: GpuModel) -> UsdPerHour:
        """Return what an hour of work on a GPU model is worth: an hour without work costs as much."""
        return self.price_of(model) if self.value_per_hour is None else self.value_per_hour

    def may_use(self, market: str) -> bool:
        """Return whether it may use a market, at once or as a fallback."""
        return not self.markets or market in self.markets or market in self.fallback.markets

    @property
    def is_probed(self) -> bool:
        """Whether its instances must be probed: for readiness, its end or its progress."""
        reports_progress = self.stalled.is_asked or (self.deadline is not None and self.deadline.is_asked)
        return self.ready.is_asked or self.kind is WorkloadKind.BATCH or reports_progress or self.guard is not None

    @property
    def moved_gb(self) -> float:
        """Gigabytes that a new host downloads: image, dataset, and a checkpoint that is kept elsewhere."""
        kept = self.checkpoint.size_gb if self.checkpoint.place is CheckpointPlace.REMOTE else 0.0
        return self.image_gb + self.dataset_gb + kept

    @property
    def credentials(self) -> tuple[str, ...]:
        """The names of the credentials that its rent needs."""
        login = (self.image_login.credential,) if self.image_login is not None else ()
        bucket = self.guard.bucket if self.guard is not None else None
        return (*login, *(name for _, name in self.env_from), *((bucket.credential,) if bucket is not None else ()))

    def values_of(self, index: int) -> tuple[tuple[str, str], ...]:
        """Return the variables of one slot that have a value of its own."""
        return tuple((name, values[index]) for name, values in self.values if index < len(values))

    @property
    def most_live(self) -> int:
        """The most of its slots that are live at once."""
        at_once = self.array.at_once if self.array is not None else None
        return self.slots if at_once is None else min(self.slots, at_once)

    def with_slots(self, slots: int) -> "Workload":
        """Return the same workload with another number of slots."""
        return replace(self, slots=slots)

    @property
    def places(self) -> tuple[Slot, ...]:
        """All slots of the workload, in order."""
        return tuple(Slot(self.name, index) for index in range(self.slots))


def new_names(workloads: Iterable[Workload]) -> Mapping[str, str]:
    """Return {old name: present name} of renamed workloads, as long as no workload has the old name."""
    known = list(workloads)
    names = {work.name for work in known}
    pairs = ((work.was, work.name) for work in known)
    return {was: name for was, name in pairs if was and was not in names}
