"""The nouns of this market: a host of one type, another renter on it, a pod, and why the market refused."""

import dataclasses
import enum
from collections.abc import Mapping

import msgspec

from agent.simulator.instances.container_state import Container, ContainerState
from agent.simulator.runpod.models import Cloud, GpuType


class Change(enum.Enum):
    """The last change of a pod, in the market's own phrases."""

    RENTED = "Rented by User"
    STOPPED = "Exited by user"
    EXITED = "Exited by Runpod"
    OUTBID = "Outbid"
    TERMINATED = "Terminated by user"


class Refused(Exception):
    """The market refused a call. `code` is one of the class constants, `sentence` the market's own."""

    NO_STOCK = "no_stock"
    NO_SPOT = "no_spot"
    BID_TOO_LOW = "bid_too_low"
    NO_FREE_GPUS = "no_free_gpus"
    IS_SPOT = "is_spot"
    NOT_EXITED = "not_exited"
    WRONG_STATE = "wrong_state"
    BALANCE = "balance"
    NO_SUCH_POD = "no_such_pod"
    NO_SUCH_TYPE = "no_such_type"
    BAD_INPUT = "bad_input"

    def __init__(self, code: str, sentence: str) -> None:
        """Keep the machine code and the sentence."""
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclasses.dataclass(slots=True, eq=False)
class Host:
    """A machine: GPUs of one type in one place."""

    machine_id: int
    token: str  # the twelve characters by which the market names it
    gpu: GpuType
    cloud: Cloud
    gpu_count: int
    center_id: str | None
    country: str
    cuda: str
    vcpu_per_gpu: int
    ram_gb_per_gpu: int
    inet_down: float
    public_ip: str
    has_public_ip: bool
    offline_until: float | None = None
    is_gone: bool = False
    maintenance: tuple[float, float] | None = None
    """Begin and end of its planned maintenance."""

    @property
    def is_online(self) -> bool:
        """Return whether the market hears from it."""
        return self.offline_until is None and not self.is_gone


@dataclasses.dataclass(slots=True, eq=False)
class Guest:
    """Another renter on a host. A bid of None rents on demand, which nothing displaces."""

    guest_id: int
    host: Host
    gpu_count: int
    bid: float | None  # $/h of one GPU
    until: float


class Terms(msgspec.Struct, frozen=True):
    """The terms of a create. A struct, because a question about offers makes one for each type of GPU."""

    name: str
    gpu: GpuType
    gpu_count: int = 1
    clouds: tuple[Cloud, ...] = (Cloud.SECURE, Cloud.COMMUNITY)
    image: str = ""
    centers: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    cudas: tuple[str, ...] = ()
    least_cuda: str | None = None
    least_vcpu: int = 0
    least_ram_gb: int = 0
    needs_public_ip: bool = False
    most_per_hour: float | None = None  # of the whole pod
    disk_gb: int = 20
    volume_gb: int = 0
    volume_path: str = "/workspace"
    network_volume: str | None = None
    args: str = ""
    ports: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    template: str | None = None
    registry: str | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Pod(ContainerState):
    """A pod. The simulator's shared parts use the fields of agent/simulator/instances/rented.py."""

    contract_id: int
    pod_id: str
    terms: Terms
    host: Host
    gpu_count: int
    price: float  # $/h of one GPU on demand, as agreed
    bid: float | None  # $/h of one GPU
    label: str | None
    image: str
    created: float
    change: Change
    changed: float
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    port_names: tuple[str, ...] = ()
    args: str = ""
    disk_gb: int = 0
    volume_gb: int = 0
    volume_path: str = "/workspace"
    is_locked: bool = False
    holds_gpu: bool = dataclasses.field(default=True, kw_only=True)
    is_leaving: bool = False  # SIGTERM was sent: its GPUs are promised to another
    end_cause: str | None = None

    @property
    def is_bid(self) -> bool:
        """Return whether it is interruptible; False is on demand."""
        return self.bid is not None

    @property
    def rate(self) -> float:
        """Return $/h of its GPUs while it runs: a bidder pays the bid."""
        return (self.price if self.bid is None else self.bid) * self.gpu_count

    @property
    def ports(self) -> list[int]:
        """Return the ports that a public address leads to; those of kind http are behind the market's proxy."""
        return sorted(number for number, kind in self.exposed() if kind == "tcp")

    def exposed(self) -> list[tuple[int, str]]:
        """Return the number and the kind ("http", "tcp", "udp") of every port it exposes."""
        parts = (name.strip().partition("/") for name in self.port_names)
        return [(int(number), kind or "tcp") for number, _, kind in parts if number.isdigit() and int(number) < 65536]  # noqa: PLR2004

    @property
    def status(self) -> str:
        """Return its present state in the words of REST v2."""
        if self.ended is not None:
            return "TERMINATED"
        if not self.holds_gpu:
            return "EXITED"
        if self.container is Container.RUNNING:
            return "RUNNING"
        return "PROVISIONING" if self.container is Container.NONE else "STARTING"
