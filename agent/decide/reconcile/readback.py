"""The readback of a rent: whether the instance is as ordered. The answer to the order does not say that.

An order that loses its price on the way rents on demand at full price. Only the instance's own record shows that.
"""

from dataclasses import dataclass, replace

import msgspec

from agent.decide.facts import LeaseChanged
from agent.decide.pricing import cooldowns
from agent.decide.reconcile import billed_times, unread_rows
from agent.domain import money
from agent.domain.market import gpu_identity, host
from agent.domain.market.gpu import GpuModel
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload

PREFIX = "mismatch: "
"""The first word of the end reason of a lease that differs from its order."""
REFUSED_AND_DONE = f"{PREFIX}the market refused the order and carried it out"
_STARTED = frozenset({InstanceState.PENDING, InstanceState.LOADING, InstanceState.RUNNING, InstanceState.EXITED})
"""The states of an instance that the leftover of a refused order never has: it is stopped."""
PRICE_STEP = money.per_hour("0.0001")
"""Markets keep a price to four decimals and round it up."""
DISK_STEP_GB = 1.0
"""Markets count disks in whole gigabytes, and some round up."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The terms of a rent's order. None and 0 mean that a term is no longer known."""

    tenure: Tenure | None
    host_id: str
    price: UsdPerHour | None
    disk_gb: float
    network_volume: str = ""
    gpus: int = 0
    gpu: GpuModel | None = None


def of_lease(lease: Lease, work: Workload | None = None) -> Asked:
    """Return the terms of a lease's order. They are valid until the lease takes over fields of the instance.

    The network volume is that of the workload now, which a fresh rent was for.
    """
    # A lease whose price was unreadable was opened at zero.
    volume = "" if work is None else work.requirements.network_volume
    price = lease.bid if lease.bid.micros else None
    return Asked(lease.tenure, lease.host_id, price, lease.disk_gb, volume, lease.gpus, lease.gpu)


def of_intent(intent: Intent) -> Asked:
    """Return the terms of a rent's intent, which has a bid but no ask."""
    return Asked(intent.tenure, intent.host_id, intent.price, intent.disk_gb, gpus=intent.gpus or 0, gpu=intent.gpu)


def is_readable(row: Instance) -> bool:
    """Return whether a row has every field of the readback; what bills no GPU needs no price of one."""
    needed = {*unread_rows.TERMS, unread_rows.LIMIT} - (set() if row.bills_gpu else {"gpu_rate"})
    return not row.unread & needed


def difference(asked: Asked, row: Instance) -> str:
    """Return how an instance differs from its order, or an empty text; a lower price is no difference."""
    if asked.tenure is not None and row.tenure is not asked.tenure:
        return f"it is {row.tenure.value} instead of {asked.tenure.value}"
    if asked.host_id and row.host_id and not host.is_same_place(row.host_id, asked.host_id):
        return f"it is on host {row.host_id} instead of {asked.host_id}"
    if asked.gpus and row.gpus != asked.gpus:
        return f"it has {row.gpus} GPUs instead of {asked.gpus}"
    if asked.gpu and row.gpu and not gpu_identity.may_be_same(asked.gpu, row.gpu):
        return f"it has {row.gpu} instead of {asked.gpu}"
    price = row.gpu_rate if row.limit is None else row.limit
    if asked.price is not None and price > asked.price + PRICE_STEP:
        return f"{'it costs' if row.limit is None else 'its limit is'} {price} instead of {asked.price}"
    if asked.disk_gb and abs(row.disk_gb - asked.disk_gb) >= DISK_STEP_GB:
        return f"its disk has {row.disk_gb:g} GB instead of {asked.disk_gb:g}"
    if asked.network_volume and row.network_volume not in {None, asked.network_volume}:
        return f"it mounts network volume {row.network_volume or 'none'} instead of {asked.network_volume}"
    return ""


def end_reason(row: Instance, differs: str) -> str:
    """Return the end reason of a lease whose instance differs from its order: also that its machine was used before."""
    return f"{cooldowns.USED_BEFORE}: {differs}" if host.is_used_before(row.host_id) else PREFIX + differs


def refused_and_done(lease: Lease, row: Instance, fact: LeaseChanged | None) -> LeaseChanged | None:
    """Return the change of the leftover of a refused rent that starts or runs: it was rented after all.

    It is released in any case. As a rent that was not as ordered it also gives its market a cooldown.
    """
    is_leftover = lease.state is LeaseState.RELEASING and lease.end_reason == billed_times.LEFTOVER
    if not is_leftover or row.state not in _STARTED:
        return fact
    change = fact or LeaseChanged(lease, lease, None)
    after = msgspec.structs.replace(change.after, end_reason=REFUSED_AND_DONE)
    return replace(change, after=after, kind=EventKind.LEASE_MISMATCHED)
