"""What a guard measured of the host of one lease at its last start: the host's own word, beside what it promised."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, OwnerKey


@dataclass(frozen=True, slots=True)
class HostCheck:
    """The figures of one check; None is not known."""

    lease_id: str
    market: str
    host_id: str
    owner_id: str
    """Empty where the market does not tell it."""
    gpu: GpuModel
    gpus: int
    dlperf: float
    """The market's benchmark of all its GPUs, as it promised at the rent."""
    checked_at: datetime
    """When the daemon first read these figures."""
    matmul_tflops: float | None = None
    """Tera-operations a second of the slowest GPU, in products of matrices of 16 bits."""
    copy_to_gpu_gbps: float | None = None
    """Gigabytes a second, as the next."""
    copy_from_gpu_gbps: float | None = None
    disk_write_mbps: float | None = None
    """Megabytes a second, until the disk has them."""
    power_share: float | None = None
    """The lowest power limit of its GPUs, as a share of its default."""

    @property
    def host(self) -> HostKey:
        """The host, with its market."""
        return HostKey(self.market, self.host_id)

    @property
    def voice(self) -> str:
        """Who speaks: all hosts of one owner are one voice; a host of an unknown owner speaks for itself."""
        return voice(self.host, self.owner_id)


def voice(host: HostKey, owner_id: str) -> str:
    """Return who speaks for a host; `owner_id` is empty where it is not known."""
    # A market may number a host as it numbers an owner.
    return f"owner {OwnerKey(host.market, owner_id)}" if owner_id else f"host {host}"
