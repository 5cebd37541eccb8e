"""Whether the program makes progress: a deadline for each job, for /readyz and the watchdog."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Late:
    """A job without progress for longer than its deadline."""

    job: str
    seconds: float
    deadline: float

    def __str__(self) -> str:
        return f"{self.job} made no progress for {self.seconds:.0f} s, {self.deadline:.0f} s are allowed"


class Health:
    """Progress deadlines per job.

    Invariants:
    1. A job is late only by the monotonic clock: a wall clock that jumps makes no job late.
    2. A market that is down makes no job late, nor does a ledger that cannot be written or a lead that cannot be shown:
       every cycle that ends counts as progress. A restart would fix none of them, and end what the process still does.
    """

    def __init__(self, monotonic: Callable[[], float], role: str = "") -> None:
        """Measure with `monotonic`, in seconds. The role is leader or standby if the ledger is on a server."""
        self.role = role
        self._monotonic = monotonic
        self._deadlines: dict[str, float] = {}
        self._progress: dict[str, float] = {}
        self._troubled: set[str] = set()
        self._is_started = False
        self._is_stopping = False

    def expect(self, job: str, within: float) -> None:
        """Expect progress of `job` every `within` seconds, from now on."""
        self._deadlines[job] = within
        self._progress[job] = self._monotonic()

    def forget(self, job: str) -> None:
        """Expect no progress of `job` any more."""
        self._deadlines.pop(job, None)
        self._progress.pop(job, None)
        self._troubled.discard(job)

    def progressed(self, job: str) -> None:
        """Note that `job` made progress."""
        self._progress[job] = self._monotonic()
        self._troubled.discard(job)

    def went_on(self, job: str) -> None:
        """Note that `job` did what it still can: the program is alive, and not ready until the job makes progress."""
        self._progress[job] = self._monotonic()
        self._troubled.add(job)

    def started(self) -> None:
        """Note that start-up is over."""
        self._is_started = True

    def stopping(self) -> None:
        """Note that the program stops: it is alive, and no longer ready."""
        self._is_stopping = True

    def late(self) -> tuple[Late, ...]:
        """Return the jobs that are past their deadline."""
        now = self._monotonic()
        waited = {job: now - self._progress[job] for job in self._deadlines}
        return tuple(
            Late(job, waited[job], deadline)
            for job, deadline in sorted(self._deadlines.items())
            if waited[job] > deadline
        )

    def troubled(self) -> tuple[str, ...]:
        """Return the jobs that ended early the last time, with where to look."""
        return tuple(f"{job} ended early: see {job}.failed in the log" for job in sorted(self._troubled))

    @property
    def is_alive(self) -> bool:
        """Whether the watchdog may be fed."""
        return not self.late()

    @property
    def is_ready(self) -> bool:
        """Whether the program has started, is not stopping, and every job makes progress within its deadline."""
        return self._is_started and not self._is_stopping and self.is_alive and not self._troubled
