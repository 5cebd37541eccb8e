"""The nouns of this market: an offer of a cloud, a machine, a run with its one job, and why a call was refused."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from agent.simulator.instances import program
from agent.simulator.instances.container_state import ContainerState

FINISHED = frozenset({"terminated", "failed", "done"})


class Refused(Exception):
    """The server refused a call: a status, a sentence, and its own code; for 422 the place in the request."""

    def __init__(self, status: int, sentence: str, code: str | None = None, where: tuple[str, ...] = ()) -> None:
        """Keep them."""
        super().__init__(sentence)
        self.status, self.sentence, self.code, self.where = status, sentence, code, where


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """One type of machine in one region of a cloud, as it is offered. Prices are cents per hour."""

    backend: str
    region: str
    name: str
    gpu: str
    memory_gb: int
    count: int
    cents: int
    is_spot: bool = False


@dataclasses.dataclass(slots=True, eq=False)
class Machine:
    """A machine as the server lists it. Its cloud took it back at `ended`, even if the server says otherwise."""

    machine_id: int
    uuid: str
    name: str
    number: int
    fleet: str
    kind: Kind
    created: float
    inet_down: float
    run_name: str
    job_uuid: str
    status: str = "provisioning"
    finished: float | None = None
    ended: float | None = None
    offline_until: float | None = None
    is_gone: bool = False

    @property
    def address(self) -> str | None:
        """Return the address of its host, which its cloud names once it has booted."""
        return None if self.status == "provisioning" else f"198.18.{self.number // 250}.{self.number % 250 + 1}"


@dataclasses.dataclass(frozen=True, slots=True)
class Nowhere:
    """The machine of a run that has none."""

    machine_id: int = 0
    inet_down: float = 0.0


@dataclasses.dataclass(slots=True, eq=False)
class Run(ContainerState):
    """A run. The simulator's shared parts use the fields of agent/simulator/instances/rented.py."""

    contract_id: int
    uuid: str
    job_uuid: str
    name: str
    spec: Mapping[str, Any]
    label: str | None
    created: float
    processed: float
    machine: Machine | None = None
    status: str = "submitted"
    job_status: str = "submitted"
    reason: str | None = None
    message: str | None = None
    exit_status: int | None = None
    finished: float | None = None
    signalled: float | None = None  # when its work got the signal to stop
    is_deleted: bool = False
    is_unreadable: bool = False  # the server cannot read its record, and leaves it out of its pages
    image: str = ""
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def configuration(self) -> Mapping[str, Any]:
        """Return the ordered resources."""
        found = self.spec["configuration"]
        return found if isinstance(found, dict) else {}

    @property
    def host(self) -> Machine | Nowhere:
        """Return its machine."""
        return self.machine or Nowhere()

    def success_streak(self, now: float, every: float) -> int:
        """Return the number of successive answers of its service, asked once in `every` seconds."""
        if self.running_since is None or not program.is_ready(self, now):
            return 0
        return 1 + int((now - self.running_since - program.of(self).ready_after) // every)

    @property
    def ports(self) -> list[int]:
        """Return no ports: the server opens none to the outside."""
        return []
