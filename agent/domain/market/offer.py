"""An offer: what a market would rent now."""

from datetime import datetime

import msgspec

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.money import UsdPerHour


class Offer(msgspec.Struct, frozen=True, gc=False):
    """One slice of a host that a market offers.

    `ask` and `floor` are for the whole slice (all its GPUs), GPU part only; disk and traffic come on top. `ask` is None
    where the search did not tell it; `floor` is None where the slice cannot be bid for. `vram_mb` is of one GPU,
    `dlperf` of the whole slice, `reliability` 0 to 1 as advertised. Rates of traffic are micro-dollars per gigabyte.
    """

    market: str
    offer_id: str
    host_id: str
    owner_id: str
    gpu: GpuModel
    gpus: int
    vram_mb: int
    dlperf: float
    reliability: float
    is_verified: bool
    region: str
    inet_down_mbps: float
    inet_up_mbps: float
    disk_gb: float
    ask: UsdPerHour | None
    floor: UsdPerHour | None
    storage_micros_per_gb_month: int
    traffic_down_micros_per_gb: int
    traffic_up_micros_per_gb: int
    ends_at: datetime | None
    seen_at: datetime
    is_rentable: bool = True

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
        """Return the hourly cost of `disk_gb` of disk: the market counts a month as 720 hours."""
        return UsdPerHour(round(self.storage_micros_per_gb_month * disk_gb / 720))
