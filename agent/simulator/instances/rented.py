"""The interface of every market's instances for the parts they share: containers, programs, ports, logs and billing."""

from collections.abc import Mapping
from typing import Protocol

from agent.simulator.instances.container_state import Container
from agent.simulator.real_process import Process


class Ground(Protocol):
    """The host of an instance, as the shared parts see it."""

    @property
    def machine_id(self) -> int:
        """Return its number in the simulator."""
        ...

    @property
    def inet_down(self) -> float:
        """Return its Mb/s down."""
        ...


class Rented(Protocol):
    """An instance of any market: a contract, a pod, a bid with its machines, or a run."""

    contract_id: int
    label: str | None
    image: str
    image_gb: float
    onstart: str | None
    env: Mapping[str, str]
    container: Container
    holds_gpu: bool
    is_offline: bool
    is_stuck: bool
    pulled_share: float
    pull_error: str | None
    loading_until: float | None
    first_started: float | None
    running_since: float | None
    ran: tuple[float, float] | None
    worked: float
    down_gb: float
    ended: float | None
    charged: dict[str, float]
    process: Process | None

    @property
    def host(self) -> Ground:
        """Return its host."""
        ...

    @property
    def is_ready(self) -> bool:
        """Return whether the image is complete on its disk."""
        ...

    @property
    def ports(self) -> list[int]:
        """Return the ports of the container that were asked to be open."""
        ...
