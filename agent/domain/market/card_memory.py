"""The memory of one card by model, in advertised gigabytes: the largest that a model is sold with.

Sources: RunPod's list of 2025-06-15, rows of Vast.ai recorded 2026-07-27, and for the others the makers' data.
"""

from collections.abc import Mapping

from agent.domain.market.gpu import GpuModel

_MODELS: Mapping[int, str] = {
    6: "GTX 1660, GTX 1660 TI, RTX 2060",
    8: "GTX 1070, GTX 1080, P4, RTX 2060S, RTX 2070, RTX 2070S, RTX 2080, RTX 2080S, RTX 3060 TI, RTX 3070, "
    "RTX 3070 TI, RTX 4060, RTX 5060",
    11: "GTX 1080 TI, RTX 2080 TI",
    12: "RTX 3060, RTX 3080, RTX 3080 TI, RTX 4070, RTX 4070S, RTX 4070 TI, RTX 5070, RTX A2000, TITAN V",
    16: "A16, P100, RTX 2000 ADA, RTX 4060 TI, RTX 4070S TI, RTX 4080, RTX 4080S, RTX 5060 TI, RTX 5070 TI, "
    "RTX 5080, RTX A4000, T4",
    20: "RTX 4000 ADA, RTX A4500",
    24: "A10, A10G, A30, L4, RTX 3090, RTX 3090 TI, RTX 4090, RTX 4500 ADA, RTX 6000, RTX A5000, RTX PRO 4000, "
    "TITAN RTX",
    32: "RTX 5000 ADA, RTX 5090, RTX PRO 4500, V100",
    48: "A40, L40, L40S, RTX 4090D, RTX 6000 ADA, RTX 8000, RTX A6000",
    80: "A100 PCIE, A100 SXM4, H100 PCIE, H100 SXM",
    94: "H100 NVL",
    96: "GH200, RTX PRO 6000 MAX Q, RTX PRO 6000 S, RTX PRO 6000 WS",
    141: "H200, H200 NVL",
    186: "GB200",
    192: "B200, MI300X",
    288: "B300",
}

GIGABYTES: Mapping[GpuModel, int] = {
    GpuModel(name): gigabytes for gigabytes, names in _MODELS.items() for name in names.split(", ")
}
"""Gigabytes by the canonical name of the model."""
