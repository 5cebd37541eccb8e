"""The nouns of this market: a bid of ours with its terms and its history, and why a call was refused."""

import dataclasses
import enum
from collections.abc import Mapping

from agent.simulator.instances.container_state import ContainerState
from agent.simulator.mithril.places import Pool
from agent.simulator.mithril.vms import Vm


class Status(enum.Enum):
    """The states of a bid."""

    OPEN = "Open"
    ALLOCATED = "Allocated"
    PREEMPTING = "Preempting"
    PAUSED = "Paused"
    TERMINATED = "Terminated"


class Happening(enum.Enum):
    """The events in the history of a bid."""

    PLACED = "Placed"
    PAUSED = "Paused"
    RESUMED = "Resumed"
    TERMINATED = "Terminated"
    ALLOCATED = "Allocated"
    PREEMPTED = "Preempted"
    LIMIT_CHANGED = "Limit Price Changed"
    VOLUMES_ATTACHED = "Volumes Attached"
    VOLUMES_REMOVED = "Volumes Removed"


class Refused(Exception):
    """The market refused a call: a status and a sentence, or for 422 the place in the request."""

    def __init__(self, status: int, sentence: str, where: tuple[str, ...] = ()) -> None:
        """Keep the status, the sentence and the place."""
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.where = where


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """One line in the history of a bid."""

    at: float
    kind: Happening
    limit_cents: int
    volume: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a new bid."""

    name: str
    project: str
    pool: Pool
    limit_cents: int
    quantity: int
    volumes: tuple[str, ...] = ()
    ssh_keys: tuple[str, ...] = ()
    script: str | None = None
    image_version: str | None = None
    memory_gb: int | None = None
    cluster: str | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Machines:
    """The machines of a bid as the simulator's shared parts and the weather see a host."""

    machine_id: int
    inet_down: float
    offline_until: float | None = None
    is_gone: bool = False


@dataclasses.dataclass(slots=True, eq=False)
class Bid(ContainerState):
    """A bid of ours. The simulator's shared parts use the fields of agent/simulator/instances/rented.py."""

    contract_id: int
    fid: str
    terms: Terms
    label: str | None
    limit_cents: int
    volumes: tuple[str, ...]
    created: float
    host: Machines
    image: str = ""
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    open_ports: tuple[int, ...] = ()
    words: tuple[str, ...] = ()  # of its container's first process
    status: Status = Status.OPEN
    vms: list[Vm] = dataclasses.field(default_factory=list)
    history: list[Event] = dataclasses.field(default_factory=list)
    notice_at: float | None = None
    turn: int = 0  # of its machines; plans of an earlier one are void
    end_cause: str | None = None

    @property
    def pool(self) -> Pool:
        """Return the pool that it bids in, as it is sold."""
        return self.terms.pool

    @property
    def quantity(self) -> int:
        """Return how many instances it asks for, all or none."""
        return self.terms.quantity

    @property
    def ports(self) -> list[int]:
        """Return the ports of its container that lead outside."""
        return sorted(self.open_ports)

    @property
    def rate(self) -> float:
        """Return $/h that all its instances pay now: the price, not the limit."""
        periods = (vm.prices[-1] for vm in self.vms if vm.prices)
        return sum(period.cents for period in periods if period.end is None) / 100.0

    @property
    def live_vms(self) -> list[Vm]:
        """Return its instances that are not gone for good."""
        return [vm for vm in self.vms if not vm.is_ended]
