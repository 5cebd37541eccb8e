"""A guard's check of one lease's host at its last start: the host's own figures, and its promises."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, OwnerKey, voice


@dataclass(frozen=True, slots=True)
class HostCheck:
    """The figures of one check; None means unknown."""

    lease_id: str
    market: str
    host_id: str
    owner_id: str
    """The owner; empty if the market does not report it."""
    gpu: GpuModel
    gpus: int
    dlperf: float
    """The market's benchmark of all its GPUs, as promised at the rent."""
    checked_at: datetime
    """When the daemon first read these figures."""
    matmul_tflops: float | None = None
    """Tera-operations a second of the slowest GPU, in products of matrices of 16 bits."""
    copy_to_gpu_gbps: float | None = None
    """Gigabytes a second; so is the next figure."""
    copy_from_gpu_gbps: float | None = None
    disk_write_mbps: float | None = None
    """Megabytes a second, measured until the disk has stored them."""
    power_share: float | None = None
    """The lowest power limit of its GPUs, as a share of its default."""
    seen_gpus: int | None = None
    """How many GPUs were there."""
    seen_gpu: str | None = None
    """The driver's name of one of them: one that is not `gpu`, if there was one."""
    pcie_generation: int | None = None
    """The lowest generation of its GPUs' links while they copied; so is the next figure."""
    pcie_width: int | None = None
    """In lanes."""
    pcie_share: float | None = None
    """The lowest speed of such a link, as a share of the most that card and slot have together."""
    clock_events: int | None = None
    """The vendor's bits of the reasons for the clocks of all GPUs while they copied."""
    defect: str | None = None
    """How the host failed the check although its GPUs were there; empty: it passed; None: nobody could say."""
    script: str | None = None
    """The digest of the `accept_script` that ran, if the defect is its verdict, or if all passed."""

    @property
    def host(self) -> HostKey:
        """The host, with its market."""
        return HostKey(self.market, self.host_id)

    @property
    def voice(self) -> str:
        """The voice of the host: all hosts of one owner have one voice, and a host of an unknown owner has its own."""
        return voice(self.host, OwnerKey(self.market, self.owner_id))
