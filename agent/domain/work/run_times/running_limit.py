"""The most time that a lease or a whole workload may run, and what happens after it."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class LimitOf(StrEnum):
    """What is counted together."""

    WORKLOAD = "workload"
    """All leases of all slots together, also ended ones."""
    LEASE = "lease"
    """Each lease by itself."""


class AtLimit(StrEnum):
    """What happens once the time has run."""

    DONE = "done"
    """The work is done: its leases are released, and it is not started again."""
    PAUSE = "pause"
    """Its leases are paused and keep their disks. Nothing is rented for it.

    Where nothing can be paused they are released. The slot of a lease that alone was counted is held then."""
    RELEASE = "release"
    """Its leases are released. A slot whose lease alone was counted is filled again."""
    MOVE = "move"
    """Another lease is rented, and the old one released when that runs. Only a lease moves."""


@dataclass(frozen=True, slots=True)
class RunningLimit:
    """After `most` of running, counted from when a lease first was ready, `then` happens.

    It is told `tell_before` ahead.
    """

    most: timedelta
    of: LimitOf = LimitOf.WORKLOAD
    then: AtLimit = AtLimit.PAUSE
    tell_before: timedelta = timedelta(minutes=15)

    @property
    def gives_up_disks(self) -> bool:
        """Whether it releases leases whose disk may hold work."""
        return self.then is not AtLimit.PAUSE
