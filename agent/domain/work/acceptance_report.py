"""A guard's check of its host at a start. None means unknown, and a host may lie in every figure."""

from typing import Annotated, Literal

import msgspec

MOST_GPUS = 16
Figure = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
Word = Annotated[str, msgspec.Meta(max_length=64)]


class GpuReport(msgspec.Struct, frozen=True):
    """One GPU, as `nvidia-smi` names it. Memory is in MB, power in watts."""

    name: Word | None = None
    memory_mb: Figure | None = None
    is_split: bool = False
    """Whether it is divided (MIG), so that its memory and speed are not those of a whole card."""
    uncorrected_errors: Count | None = None
    """Uncorrected errors of its memory since its driver started."""
    power_limit_watts: Figure | None = None
    power_default_watts: Figure | None = None
    pcie_generation: Count | None = None
    pcie_generation_most: Count | None = None
    pcie_width: Count | None = None
    pcie_width_most: Count | None = None
    clock_events: Word | None = None
    """The reasons for its present clock, as the vendor's bits in hexadecimal."""
    temperature_c: Figure | None = None


class ScriptReport(msgspec.Struct, frozen=True):
    """The end of the operator's own check: its exit code, None if it did not end in time, and its last line."""

    code: Annotated[int, msgspec.Meta(ge=-64, le=255)] | None = None
    last_line: Annotated[str, msgspec.Meta(max_length=200)] = ""


class AcceptanceReport(msgspec.Struct, frozen=True):
    """The check of one start."""

    version: Literal[1]
    lease: Annotated[str, msgspec.Meta(max_length=256)]
    """The id of the intent that rented its lease."""
    tool: Literal["ok", "missing", "failed", "slow", "unreadable"] = "missing"
    """The result of `nvidia-smi`."""
    driver: Word | None = None
    gpu_count: Count | None = None
    gpus: Annotated[tuple[GpuReport, ...], msgspec.Meta(max_length=MOST_GPUS)] = ()
    is_under_load: bool = False
    """Whether the figures of the link were read while copies ran, since an idle link is slow."""
    cuda_starts: bool | None = None
    cuda_error: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    matmul_tflops: Figure | None = None
    """Tera-operations a second of the slowest GPU, in products of matrices of 16 bits."""
    copy_to_gpu_gbps: Figure | None = None
    """Gigabytes a second; so is the next figure."""
    copy_from_gpu_gbps: Figure | None = None
    disk_write_mbps: Figure | None = None
    """Megabytes a second, measured until the disk has stored them."""
    script: ScriptReport | None = None
    took_seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] | None = None
