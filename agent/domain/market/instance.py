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

    Text is untrusted, bounded by the adapter. What is unread is put in from the lease
    (`agent/decide/reconcile/unread_rows.py`).
    """

    market: str
    """The market that lists it."""
    instance_id: str
    """The market's id of it."""
    label: str
    """The label that the market shows; empty where none."""
    host_id: str
    """Its host; empty where the market does not tell it yet."""
    owner_id: str
    """The host's owner; empty where unknown."""
    tenure: Tenure
    """How it is held."""
    state: InstanceState
    """What it is doing."""
    gpu: GpuModel
    """The model of its GPUs."""
    gpus: int
    """How many GPUs it has."""
    gpu_rate: UsdPerHour
    """What its GPUs cost per hour while running; of an interruptible one the bid as the market keeps it."""
    disk_rate: UsdPerHour
    """What its disk costs per hour, in every state."""
    disk_gb: float
    """The size of its disk."""
    created_at: datetime | None
    """When it was made, where the market tells it."""
    ends_at: datetime | None
    """When its host leaves the market, where the market tells it."""
    floor: UsdPerHour | None = None
    """The host's floor on the instance's own record."""
    dlperf: float = 0.0
    """The market's benchmark of its GPUs together."""
    reliability: float = 0.0
    """Reliability of its host from 0 to 1, as advertised."""
    inet_down_mbps: float = 0.0
    """Download speed of its host, as advertised."""
    traffic_down_gb: float = 0.0
    """What the market has billed as fetched so far."""
    traffic_up_gb: float = 0.0
    """What the market has billed as sent so far."""
    traffic_down_micros_per_gb: int = 0
    traffic_up_micros_per_gb: int = 0
    is_wanted_running: bool = False
    """Whether the market means to run it."""
    message: str = ""
    """What the market says of it."""
    address: str = ""
    """Where a shell on it is reached."""
    gpu_util: float | None = None
    """Per cent of GPU use, where the market tells it."""
    ports: str = ""
    """Where its ports are reached, as in a lease."""
    has_trouble: bool = False
    """Whether the message reads like an error."""
    is_image_refused: bool = False
    """Whether the image is what cannot be had."""
    bills_while_loading: bool = False
    """Whether its GPUs are charged from the rent on, not only from when they run."""
    may_bill_gpu: bool = False
    """Whether its GPUs may be charged although the state does not say so."""
    unread: frozenset[str] = frozenset()
    """Fields that the answer left out or made absurd: zero or nothing here, until the lease fills them in."""

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
