"""The state of an instance's container, on every market: the share of its image, its running times and its charges."""

import dataclasses
import enum

from agent.simulator.real_process import Process


class Container(enum.Enum):
    """The state of an instance's container, as its host would report it."""

    NONE = "none"  # nothing reported yet: the seconds after a create
    LOADING = "loading"  # image being pulled or unpacked
    CREATED = "created"  # the host gave up before the first start; see ContainerState.pull_error
    RUNNING = "running"
    EXITED = "exited"  # ran once, and does not run now
    REBOOTING = "rebooting"
    RECYCLING = "recycling"


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class ContainerState:
    """The part of an instance that all markets have. Times are epoch seconds; money is dollars."""

    image_gb: float = 0.0
    onstart: str | None = None
    container: Container = Container.NONE
    holds_gpu: bool = False
    is_offline: bool = False  # its host does not answer
    is_stuck: bool = False
    pulled_share: float = 0.0  # of the image, 1 when complete
    pull_error: str | None = None
    loading_until: float | None = None
    first_started: float | None = None  # container's first run
    running_since: float | None = None
    ran: tuple[float, float] | None = None  # the last stretch that ended
    worked: float = 0.0  # seconds of all stretches that ended
    down_gb: float = 0.0
    ended: float | None = None
    process: Process | None = None  # its real processes, in a climate that runs them
    charged: dict[str, float] = dataclasses.field(default_factory=lambda: {"gpu": 0.0, "disk": 0.0})

    @property
    def is_ready(self) -> bool:
        """Return whether the image is complete on its disk."""
        return self.pulled_share >= 1.0
