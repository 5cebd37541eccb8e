"""An instance: the market's object behind a lease, as its listing shows it."""

from datetime import datetime
from enum import Enum

import msgspec

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE, UsdPerHour


class InstanceState(Enum):
    """The state of an instance in our words; the adapter's table maps the market's fields to these."""

    PENDING = "pending"
    """Accepted; nothing runs yet."""
    LOADING = "loading"
    """The image is being pulled or the container made."""
    RUNNING = "running"
    PAUSED = "paused"
    """The GPU is not ours now, the disk is: outbid, displaced, stopped and out of credit all look like this."""
    FAILED = "failed"
    """Stopped after the host failed to start it; the message says why."""
    EXITED = "exited"
    """The container ended although the instance still has the GPU."""
    OFFLINE = "offline"
    """The host does not answer the market."""
    UNKNOWN = "unknown"
    """An unknown combination of fields: ignorance, never an interruption."""


_CHARGED = frozenset({InstanceState.RUNNING, InstanceState.EXITED, InstanceState.UNKNOWN})
"""An ended container gives no GPU back, and an unknown combination may be a running one."""


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a market's complete listing.

    `gpu_rate` is what the GPUs cost per hour while running (for an interruptible instance: the bid as the market keeps
    it), `disk_rate` what the disk costs per hour in every state. `bills_while_loading` tells that the GPUs are charged
    from the rent on, not only from when they run, `may_bill_gpu` that they may be charged although the state does not
    say so. `host_id` is empty where the market does not tell it yet. `floor` is the host's floor on the instance's own
    record. `traffic_*_gb` is what the market has billed so far. `message` is
    untrusted text, bounded by the adapter; `has_trouble` tells that it reads like an error, `is_image_refused` that the
    image is what cannot be had. `ports` is as in a lease.

    `unread` names the fields that the market's answer left out or made absurd; they hold zero or nothing here, and the
    fleet puts in their place what the lease says (`agent/decide/reconcile/unread_rows.py`).
    """

    market: str
    instance_id: str
    label: str
    host_id: str
    owner_id: str
    tenure: Tenure
    state: InstanceState
    gpu: GpuModel
    gpus: int
    gpu_rate: UsdPerHour
    disk_rate: UsdPerHour
    disk_gb: float
    created_at: datetime | None
    ends_at: datetime | None
    floor: UsdPerHour | None = None
    dlperf: float = 0.0
    reliability: float = 0.0
    inet_down_mbps: float = 0.0
    traffic_down_gb: float = 0.0
    traffic_up_gb: float = 0.0
    traffic_down_micros_per_gb: int = 0
    traffic_up_micros_per_gb: int = 0
    is_wanted_running: bool = False
    message: str = ""
    address: str = ""
    gpu_util: float | None = None
    ports: str = ""
    has_trouble: bool = False
    is_image_refused: bool = False
    bills_while_loading: bool = False
    may_bill_gpu: bool = False
    unread: frozenset[str] = frozenset()

    @property
    def host(self) -> HostKey:
        """The host, with its market."""
        return HostKey(self.market, self.host_id)

    @property
    def owner(self) -> OwnerKey:
        """The owner of the host, with its market."""
        return OwnerKey(self.market, self.owner_id)

    @property
    def bid(self) -> UsdPerHour | None:
        """The present bid, or None if the instance is not interruptible."""
        return self.gpu_rate if self.tenure is Tenure.INTERRUPTIBLE else None

    @property
    def bills_gpu(self) -> bool:
        """Whether its GPUs are charged in its present state; an unknown state counts as charged."""
        is_loading = self.state in {InstanceState.PENDING, InstanceState.LOADING}
        return self.state in _CHARGED or self.may_bill_gpu or (is_loading and self.bills_while_loading)

    @property
    def billing_rate(self) -> UsdPerHour:
        """Its hourly cost in its present state; a host that is offline costs nothing if its GPUs do not."""
        if self.bills_gpu:
            return self.disk_rate + self.gpu_rate
        return FREE if self.state is InstanceState.OFFLINE else self.disk_rate
