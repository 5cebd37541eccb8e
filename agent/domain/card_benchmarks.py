"""The benchmark of one card, where no market reports one: DLPerf, measured on a market or derived from such a figure.

Each figure has its source, or is marked as assumed. Figures measured on our own leases outweigh them with time.
"""

from collections.abc import Mapping

from agent.domain.market.gpu import GpuModel

_MEASURED: Mapping[str, float] = {
    # Medians of offers recorded 2026-07-27 (Vast.ai on-demand and bid lists, 24 rows), per GPU.
    "RTX 3090": 44.4,
    "RTX 4090": 98.3,
    "V100": 25.7,
    # Offers of Vast.ai recorded the same day, per GPU, one host each; of hosts of one model the fastest. The
    # others of H100 SXM (184.3), RTX PRO 6000 WS (143) and RTX 3090 (15.9) ran at half of it or less.
    "H100 SXM": 358.6,
    "H100 NVL": 305.3,
    "A100 SXM4": 80.5,
    "RTX PRO 6000 S": 279.1,
    "RTX 2080 TI": 11.0,
    # Medians over the verified data-centre offers of Vast.ai on 2026-08-08, published by a user.
    "RTX 5090": 197.2,
    "RTX PRO 6000 WS": 281.8,
}

_DERIVED: Mapping[str, tuple[str, float]] = {
    # Not measured. Derived: the measured GPU of the same silicon, scaled by the makers' figures named here.
    "A100 PCIE": ("A100 SXM4", 1935 / 2039),  # same TFLOPS, memory bandwidth in GB/s
    "H100 PCIE": ("H100 SXM", 51.2 / 66.9),  # FP32 TFLOPS
    "H200": ("H100 SXM", 1.0),  # same TFLOPS; its faster memory is not counted
    "A30": ("A100 SXM4", 10.3 / 19.5),  # FP32 TFLOPS
    "RTX PRO 6000 MAX Q": ("RTX PRO 6000 WS", 110 / 125),  # FP32 TFLOPS
    # Assumed, and rather too low: FP32 TFLOPS of another generation (its FP16 figure is 2.3 times as high).
    "B200": ("H100 SXM", 75 / 66.9),
    # Assumed: an H100 SXM's. Its FP16 figure is 1.3 times as high, and no benchmark of this kind runs on it.
    "MI300X": ("H100 SXM", 1.0),
    # Assumed: the measured GPU of the same generation, scaled by the makers' FP32 TFLOPS (that GPU's own come first).
    "RTX 3070": ("RTX 3090", 20.3 / 35.6),
    "RTX 3080": ("RTX 3090", 29.8 / 35.6),
    "RTX 3080 TI": ("RTX 3090", 34.1 / 35.6),
    "RTX 3090 TI": ("RTX 3090", 40.0 / 35.6),
    "RTX A2000": ("RTX 3090", 8.0 / 35.6),
    "RTX A4000": ("RTX 3090", 19.2 / 35.6),
    "RTX A4500": ("RTX 3090", 23.7 / 35.6),
    "RTX A5000": ("RTX 3090", 27.8 / 35.6),
    "RTX A6000": ("RTX 3090", 38.7 / 35.6),
    "A40": ("RTX 3090", 37.4 / 35.6),
    "RTX 4070 TI": ("RTX 4090", 40.1 / 82.6),
    "RTX 4080": ("RTX 4090", 48.7 / 82.6),
    "RTX 4080S": ("RTX 4090", 52.2 / 82.6),
    "RTX 2000 ADA": ("RTX 4090", 12.0 / 82.6),
    "RTX 4000 ADA": ("RTX 4090", 26.7 / 82.6),
    "RTX 5000 ADA": ("RTX 4090", 65.3 / 82.6),
    "RTX 6000 ADA": ("RTX 4090", 91.1 / 82.6),
    "L4": ("RTX 4090", 30.3 / 82.6),
    "L40": ("RTX 4090", 90.5 / 82.6),
    "L40S": ("RTX 4090", 91.6 / 82.6),
    "RTX 5080": ("RTX 5090", 56.3 / 104.8),
}

MOST = max(_MEASURED.values())
"""The DLPerf of the fastest card that was measured."""


def dlperf(model: GpuModel) -> float:
    """Return the DLPerf of one GPU, or 0 if neither it nor a similar one was measured."""
    if model in _MEASURED:
        return _MEASURED[model]
    like, share = _DERIVED.get(model, ("", 0.0))
    return round(_MEASURED.get(like, 0.0) * share, 1)
