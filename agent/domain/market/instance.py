"""An instance: the market's object behind a lease, as its listing shows it."""

from datetime import datetime, timedelta
from enum import Enum

import msgspec

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.market.price import PaidBill
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
    """The GPU is not ours now, but the disk is. Outbid, displaced, stopped and out of credit all look like this."""
    FAILED = "failed"
    """Stopped after the host failed to start it; the message says why."""
    EXITED = "exited"
    """The container ended, but the instance still has the GPU."""
    OFFLINE = "offline"
    """The host does not answer the market."""
    UNKNOWN = "unknown"
    """An unknown combination of fields. It is never an interruption."""


_CHARGED = frozenset({InstanceState.RUNNING, InstanceState.EXITED, InstanceState.UNKNOWN})
"""The states whose GPUs count as charged: an ended container keeps its GPU, and an unknown combination may be
running."""


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a market's complete listing.

    Text is untrusted; the adapter bounds it. `agent/decide/reconcile/unread_rows.py` fills unread fields from the
    lease.
    """

    market: str
    """The market that lists it."""
    instance_id: str
    """The market's id of the instance."""
    label: str
    """The label that the market shows; empty if there is none."""
    host_id: str
    """Its host; empty if the market does not report it yet."""
    owner_id: str
    """The host's owner; empty if unknown."""
    tenure: Tenure
    """Its tenure."""
    state: InstanceState
    """Its state."""
    gpu: GpuModel
    """The model of its GPUs."""
    gpus: int
    """How many GPUs it has."""
    gpu_rate: UsdPerHour
    """The hourly price that is paid for its GPUs while running. Where the price paid is the bid and it is
    interruptible, this is the bid as the market keeps it."""
    disk_rate: UsdPerHour
    """The hourly cost of its disk, in every state."""
    disk_gb: float
    """The size of its disk."""
    created_at: datetime | None
    """When it was created, if the market reports it."""
    ends_at: datetime | None
    """When its host leaves the market, if the market reports it."""
    floor: UsdPerHour | None = None
    """The host's floor in the instance's own record."""
    dlperf: float = 0.0
    """The market's benchmark of its GPUs together."""
    reliability: float = 0.0
    """Reliability of its host from 0 to 1, as advertised."""
    inet_down_mbps: float = 0.0
    """Download speed of its host, as advertised."""
    traffic_down_gb: float = 0.0
    """Downloaded gigabytes that the market has billed so far."""
    traffic_up_gb: float = 0.0
    """Uploaded gigabytes that the market has billed so far."""
    traffic_down_micros_per_gb: int = 0
    traffic_up_micros_per_gb: int = 0
    is_wanted_running: bool = False
    """Whether the market intends to run it."""
    message: str = ""
    """The market's message about it."""
    address: str = ""
    """The address of a shell on it."""
    gpu_util: float | None = None
    """Per cent of GPU use, if the market reports it."""
    ports: str = ""
    """The addresses of its ports, in the form of a lease's."""
    stopped_from_outside: str = ""
    """Why its market says that it was ended, if neither its host, nor capacity, nor its container ended it; empty
    otherwise."""
    has_trouble: bool = False
    """Whether the message reads like an error."""
    is_image_refused: bool = False
    """Whether the start failed because the image cannot be pulled."""
    is_out_of_capacity: bool = False
    """Whether the start failed because its market had no capacity left, before any machine was made for it."""
    bills_while_loading: bool = False
    """Whether its GPUs are charged from the rent on, not only while they run."""
    is_called_over: bool = False
    """Whether its market calls it over for good, and cannot prove that its machine bills no more. Nothing of ours runs
    on it, so its slot may run elsewhere; it counts until a person has looked."""
    was_over_at: datetime | None = None
    """When its market last called its machine over for good, in UTC, if two looks in a row said so and this one denies
    it."""
    may_bill_gpu: bool = False
    """Whether its GPUs may be charged in a state that does not charge them."""
    page_answers: bool | None = None
    """Whether the page of its service answers its market; None if its market asks none."""
    page_stands: timedelta = timedelta()
    """How long its market says so until its next request of the page is answered."""
    unread: frozenset[str] = frozenset()
    """Fields that are missing or absurd in the answer; they are zero or empty here until the lease fills them."""
    limit: UsdPerHour | None = None
    """The renter's bid per hour as the market keeps it, only where the price paid is not the bid."""
    network_volume: str | None = None
    """The network volume that it mounts, empty if it surely mounts none; None if the market does not show that."""
    notice_at: datetime | None = None
    """When it ends, in UTC, if the market has said that it interrupts it."""
    price_since: datetime | None = None
    """Since when, in UTC, it pays `gpu_rate` by the market's own bill; None if no bill says so."""
    is_rate_shown_twice: bool = False
    """Whether a second surface of the market, which other programs of it answer, shows the same `gpu_rate`."""
    bill: PaidBill | None = None
    """What it paid by the market's own bill, if the market has one by period and it was read."""

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
        if self.tenure is not Tenure.INTERRUPTIBLE:
            return None
        return self.gpu_rate if self.limit is None else self.limit

    @property
    def bills_gpu(self) -> bool:
        """Whether its GPUs are charged in its present state; an unknown state counts as charged."""
        is_loading = self.state in {InstanceState.PENDING, InstanceState.LOADING}
        return self.state in _CHARGED or self.may_bill_gpu or (is_loading and self.bills_while_loading)

    @property
    def billing_rate(self) -> UsdPerHour:
        """Its hourly cost in its present state; on an offline host nothing, unless its GPUs are charged."""
        if self.bills_gpu:
            return self.disk_rate + self.gpu_rate
        return FREE if self.state is InstanceState.OFFLINE else self.disk_rate
