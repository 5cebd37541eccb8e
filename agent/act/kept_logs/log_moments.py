"""When the output of a container is worth keeping: pure."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.record.lease import Lease, LeaseState


@dataclass(frozen=True, slots=True)
class Moment:
    """Something after which a container's output may be lost."""

    what: str
    since: datetime


def of(lease: Lease, held_since: datetime | None) -> Moment | None:
    """Return what has happened to a lease; None while it starts or runs and its slot waits for no person."""
    if lease.interrupted_by is not None:
        return Moment(lease.interrupted_by.value, lease.state_since)
    if lease.state is LeaseState.RELEASING:
        return Moment(f"released: {lease.end_reason.partition(':')[0]}"[:100], lease.state_since)
    if lease.state not in {LeaseState.STARTING, LeaseState.RUNNING}:
        return Moment(lease.state.value, lease.state_since)
    if lease.checkpoint_asked_at is not None:
        return Moment("ending", lease.checkpoint_asked_at)
    return Moment("held", held_since) if held_since is not None else None
