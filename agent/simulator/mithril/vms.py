"""A virtual machine of a bid, which the market calls an instance: its states and the prices that it pays."""

import dataclasses
import enum


class VmStatus(enum.Enum):
    """The states of an instance that this simulator uses."""

    NEW = "STATUS_NEW"
    CONFIRMED = "STATUS_CONFIRMED"
    INITIALIZING = "STATUS_INITIALIZING"
    STARTING = "STATUS_STARTING"
    RUNNING = "STATUS_RUNNING"
    STOPPING = "STATUS_STOPPING"
    PAUSED = "STATUS_PAUSED"
    PREEMPTING = "STATUS_PREEMPTING"
    PREEMPTED = "STATUS_PREEMPTED"
    TERMINATED = "STATUS_TERMINATED"
    ERROR = "STATUS_ERROR"


BOOTING = (VmStatus.NEW, VmStatus.CONFIRMED, VmStatus.INITIALIZING, VmStatus.STARTING)
ENDED = frozenset({VmStatus.PREEMPTED, VmStatus.TERMINATED, VmStatus.ERROR})


@dataclasses.dataclass(slots=True)
class PricePeriod:
    """A price that an instance pays from `start` until `end`, cents an hour; None goes on."""

    cents: int
    start: float
    end: float | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Vm:
    """An instance: one allocation of one of a bid's machines. One that was preempted does not come back."""

    fid: str
    number: int
    name: str
    created: float
    address: str
    statuses: list[tuple[float, VmStatus]]
    prices: list[PricePeriod] = dataclasses.field(default_factory=list)

    @property
    def status(self) -> VmStatus:
        """Return its present state."""
        return self.statuses[-1][1]

    @property
    def is_ended(self) -> bool:
        """Return whether it is gone for good."""
        return self.status in ENDED
