"""The types of GPU the market sells, at the prices of one recorded answer of its `gpuTypes`.

Recorded 2025-06-15 10:27 and 14:27 UTC: 38 types, without the row "unknown". None of their prices changed in the 6.5
days that eight such answers span, so they are constants here. A price of a cloud that does not sell the type means
nothing.
"""

import dataclasses
import enum


class Cloud(enum.Enum):
    """The two kinds of hosts."""

    SECURE = "SECURE"
    COMMUNITY = "COMMUNITY"


@dataclasses.dataclass(frozen=True, slots=True)
class GpuType:
    """One type. Prices are $/h of one GPU; a type whose floor is None is not sold interruptible."""

    type_id: str
    name: str
    memory_gb: int
    most: int  # GPUs of the largest pod
    is_secure: bool
    is_community: bool
    secure_price: float
    secure_floor: float | None
    community_price: float
    community_floor: float | None
    data_centers: tuple[str, ...] = ()  # of its clusters, as recorded

    def clouds(self) -> tuple[Cloud, ...]:
        """Return the clouds that sell it."""
        sold = ((Cloud.SECURE, self.is_secure), (Cloud.COMMUNITY, self.is_community))
        return tuple(cloud for cloud, is_sold in sold if is_sold)

    def price(self, cloud: Cloud) -> float:
        """Return the list price of one GPU."""
        return self.secure_price if cloud is Cloud.SECURE else self.community_price

    def floor(self, cloud: Cloud) -> float | None:
        """Return the lowest bid for one GPU."""
        return self.secure_floor if cloud is Cloud.SECURE else self.community_floor

    @property
    def maker(self) -> str:
        """Return its maker."""
        return "AMD" if self.type_id.startswith("AMD") else "NVIDIA"


TYPES: tuple[GpuType, ...] = (
    GpuType("AMD Instinct MI300X OAM", "MI300X", 192, 8, True, False, 2.49, 1.49, 0.5, None),
    GpuType("NVIDIA A100 80GB PCIe", "A100 PCIe", 80, 8, True, True, 1.64, 0.82, 1.19, 0.6),
    GpuType("NVIDIA A100-SXM4-80GB", "A100 SXM", 80, 8, True, True, 1.74, 0.95, 1.39, 0.79, ("US-KS-2", "US-MO-1")),
    GpuType("NVIDIA A30", "A30", 24, 4, False, True, 0.41, 0.21, 0.22, 0.11),
    GpuType("NVIDIA A40", "A40", 48, 10, True, False, 0.4, 0.28, 0.35, 0.24),
    GpuType("NVIDIA B200", "B200", 180, 8, True, False, 6.39, None, 0.5, None),
    GpuType("NVIDIA GeForce RTX 3070", "RTX 3070", 8, 8, False, True, 0.0, None, 0.13, 0.07),
    GpuType("NVIDIA GeForce RTX 3080", "RTX 3080", 10, 4, False, True, 0.0, None, 0.17, 0.09),
    GpuType("NVIDIA GeForce RTX 3080 Ti", "RTX 3080 Ti", 12, 4, False, True, 0.0, None, 0.18, 0.09),
    GpuType("NVIDIA GeForce RTX 3090", "RTX 3090", 24, 9, True, True, 0.46, 0.22, 0.22, 0.11),
    GpuType("NVIDIA GeForce RTX 3090 Ti", "RTX 3090 Ti", 24, 2, False, True, 0.46, None, 0.27, 0.14),
    GpuType("NVIDIA GeForce RTX 4070 Ti", "RTX 4070 Ti", 12, 2, False, True, 0.5, None, 0.19, 0.1),
    GpuType("NVIDIA GeForce RTX 4080", "RTX 4080", 16, 2, False, True, 0.5, None, 0.27, 0.16),
    GpuType("NVIDIA GeForce RTX 4080 SUPER", "RTX 4080 SUPER", 16, 6, False, True, 0.5, None, 0.28, 0.17),
    GpuType("NVIDIA GeForce RTX 4090", "RTX 4090", 24, 9, True, True, 0.69, 0.35, 0.34, 0.2),
    GpuType("NVIDIA GeForce RTX 5080", "RTX 5080", 16, 5, False, True, 0.59, 0.3, 0.49, 0.25),
    GpuType("NVIDIA GeForce RTX 5090", "RTX 5090", 32, 8, True, True, 0.94, None, 0.69, None),
    GpuType("NVIDIA H100 80GB HBM3", "H100 SXM", 80, 8, True, True, 2.99, 1.75, 2.69, 1.5, ("CA-MTL-1", "EUR-IS-3")),
    GpuType("NVIDIA H100 NVL", "H100 NVL", 94, 10, True, True, 2.79, 1.65, 2.59, 1.4),
    GpuType("NVIDIA H100 PCIe", "H100 PCIe", 80, 8, True, True, 2.19, 1.25, 1.99, 1.35),
    GpuType("NVIDIA H200", "H200 SXM", 141, 8, True, True, 3.99, None, 3.59, None, ("CA-MTL-4",)),
    GpuType("NVIDIA L4", "L4", 24, 10, True, False, 0.43, 0.22, 0.44, None),
    GpuType("NVIDIA L40", "L40", 48, 10, True, True, 0.99, 0.5, 0.69, None),
    GpuType("NVIDIA L40S", "L40S", 48, 8, True, True, 0.86, 0.43, 0.79, 0.4),
    GpuType("NVIDIA RTX 2000 Ada Generation", "RTX 2000 Ada", 16, 8, True, False, 0.23, 0.14, 0.5, None),
    GpuType("NVIDIA RTX 4000 Ada Generation", "RTX 4000 Ada", 20, 8, True, True, 0.26, 0.19, 0.2, 0.1),
    GpuType("NVIDIA RTX 5000 Ada Generation", "RTX 5000 Ada", 32, 8, False, True, 0.83, 0.42, 0.49, 0.25),
    GpuType("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", 48, 8, True, True, 0.77, 0.39, 0.74, 0.4),
    GpuType("NVIDIA RTX A2000", "RTX A2000", 6, 4, False, True, 0.5, None, 0.12, 0.06),
    GpuType("NVIDIA RTX A4000", "RTX A4000", 16, 12, True, True, 0.24, 0.16, 0.17, 0.09),
    GpuType("NVIDIA RTX A4500", "RTX A4500", 20, 4, True, True, 0.25, 0.18, 0.19, 0.1),
    GpuType("NVIDIA RTX A5000", "RTX A5000", 24, 10, True, True, 0.26, 0.14, 0.16, 0.11),
    GpuType("NVIDIA RTX A6000", "RTX A6000", 48, 10, True, True, 0.49, 0.33, 0.33, 0.25),
    GpuType(
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000", 96, 4, True, False, 1.79, None, 0.5, None
    ),
    GpuType("Tesla V100-FHHL-16GB", "V100 FHHL", 16, 8, False, True, 0.0, None, 0.19, 0.1),
    GpuType("Tesla V100-PCIE-16GB", "Tesla V100", 16, 8, False, True, 0.0, None, 0.19, 0.1),
    GpuType("Tesla V100-SXM2-16GB", "V100 SXM2", 16, 8, False, True, 0.0, None, 0.23, 0.12),
    GpuType("Tesla V100-SXM2-32GB", "V100 SXM2 32GB", 32, 4, False, True, 0.49, 0.25, 0.33, 0.17),
)
BY_ID = {gpu.type_id: gpu for gpu in TYPES}
# A machine without GPUs sells its vCPUs one by one; the price is the published API document's example.
CPU = GpuType(
    "CPU",
    "CPU",
    0,
    64,
    is_secure=True,
    is_community=False,
    secure_price=0.04,
    secure_floor=None,
    community_price=0.0,
    community_floor=None,
)
