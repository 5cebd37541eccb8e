"""An offer: a slice of a host that a market would rent now."""

from datetime import datetime

import msgspec

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.money import UsdPerHour


class Offer(msgspec.Struct, frozen=True, gc=False):
    """One slice of a host that a market offers.

    Disk and traffic come on top of `ask` and `floor`. Rates of traffic are micro-dollars per gigabyte.
    """

    market: str
    """The market that offers it."""
    offer_id: str
    """The market's id of the offer."""
    host_id: str
    """Its host, or a pool of similar hosts."""
    owner_id: str
    """The host's owner; empty if unknown."""
    gpu: GpuModel
    """The model of its GPUs."""
    gpus: int
    """How many GPUs the slice has."""
    vram_mb: int
    """The memory of one GPU."""
    dlperf: float
    """The market's benchmark of the whole slice."""
    reliability: float
    """From 0 to 1, as advertised."""
    is_verified: bool
    """Whether the market has verified the host."""
    region: str
    """Where it is, as the market writes it."""
    inet_down_mbps: float
    inet_up_mbps: float
    disk_gb: float
    """The largest disk that may be rented with it."""
    ask: UsdPerHour | None
    """Its on-demand price for all its GPUs; None if the search did not report it."""
    floor: UsdPerHour | None
    """The lowest bid for all its GPUs that would run at once; None if it cannot be bid for or `is_price_unknown`."""
    storage_micros_per_gb_month: int
    traffic_down_micros_per_gb: int
    traffic_up_micros_per_gb: int
    ends_at: datetime | None
    """When its host leaves the market, if the market reports it."""
    seen_at: datetime
    """When the market showed it."""
    is_rentable: bool = True
    """Whether the market would rent it now."""
    is_price_unknown: bool = False
    """Whether nobody can say which bid would win, so that `floor` is None: a bid there waits without an expected
    price."""
    is_datacenter: bool | None = None
    """Whether the host is in a data centre; None if the market does not show it."""
    is_price_taken: bool = False
    """Whether its interruptible price is taken as listed: `floor` is then the price, and no higher bid wins more."""
    opens_ports: bool = True
    """Whether the ports of a container there can be reached from outside."""
    asks_pages: bool = False
    """Whether its market itself asks a page of a service there, and tells whether it answers."""
    egress_micros_per_gb: int = 0
    """Micro-dollars for a gigabyte that leaves its cloud, by the operator's own figure: no listing shows it."""
    keeps_disk: bool = True
    """Whether the disk outlives the loss of an instance there."""
    network_volumes: tuple[str, ...] = ()
    """The ids of the account's network volumes that can be mounted here."""
    price_paid: UsdPerHour | None = None
    """What a winner pays per hour now for all its GPUs, only where the price paid is not the bid."""

    @property
    def key(self) -> str:
        """The offer with its market, for cooldowns: markets number their offers independently."""
        return f"{self.market}/{self.offer_id}"

    @property
    def host(self) -> HostKey:
        """The host, with its market."""
        return HostKey(self.market, self.host_id)

    @property
    def owner(self) -> OwnerKey:
        """The owner of the host, with its market."""
        return OwnerKey(self.market, self.owner_id)

    def disk_rate(self, disk_gb: float) -> UsdPerHour:
        """Return the hourly cost of `disk_gb` gigabytes of disk, with a month of 720 hours as markets count it."""
        return UsdPerHour(round(self.storage_micros_per_gb_month * disk_gb / 720))
