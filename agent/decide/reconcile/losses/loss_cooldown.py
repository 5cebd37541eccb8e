"""The cooldown after a loss."""

from datetime import datetime

from agent.decide.pricing import cooldowns
from agent.domain.market.interruption import Cause
from agent.domain.record import cooldown
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.lease import Lease


def of(lease: Lease, why: Cause, now: datetime, *, has_failed: bool) -> Cooldown | None:
    """Return the cooldown of the host on which a lease was lost or never started, or None."""
    if has_failed:
        return cooldown.of_host(lease.host, now + cooldowns.START_FAILED, "a failed start")
    if why in {Cause.HOST_OFFLINE, Cause.HOST_GONE}:
        rest = cooldowns.POOL_LOST if lease.host.is_pool else cooldowns.HOST_LOST
        return cooldown.of_host(lease.host, now + rest, why.value)
    return None
