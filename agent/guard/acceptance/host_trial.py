"""The trial of a host: whether CUDA starts, how fast its GPUs multiply and copy, how fast its disk writes.

Each part is tried in a process of its own, which may hang or crash as a driver does. This module is that process's
program too. It prints one line of JSON for each figure, so the figures before a crash are known.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import math
import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

from agent.guard.guard_clock import uptime

GPU, DISK = "gpu", "disk"
UNDER_LOAD = "under_load"
"""Printed while copies run, for two seconds: figures of the link are only true then."""
DISK_BYTES, COPY_BYTES = 64 * 1024 * 1024, 64 * 1024 * 1024
MOST_GPUS, MOST_TEXT, MOST_NUMBER = 16, 200, 1e9
_SIDE = 4096
_SECONDS = 1.0
_LOAD_SECONDS = 2.0
_LIBRARY = "libcuda.so.1"
_OF_THE_IMAGE = {803, 804}
"""CUDA's codes for an image whose own part of the driver does not fit the host's: either may be at fault."""
_BOOT = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_module(sys.argv[2], run_name='__main__')"
_NAME = "agent.guard.acceptance.host_trial"
_ORIGIN = str(Path(__file__).parents[3])
_NUMBERS = frozenset({"matmul_tflops", "copy_to_gpu_gbps", "copy_from_gpu_gbps", "disk_write_mbps"})


def words(*asked: str) -> Sequence[str]:
    """Return the command line of a trial."""
    return [sys.executable, "-c", _BOOT, _ORIGIN, _NAME, *asked]


def figures(printed: str) -> dict[str, Any]:
    """Return the figures among lines that a trial printed, or the libraries that it loaded."""
    found: dict[str, Any] = {}
    for line in printed.splitlines():
        try:
            row = json.loads(line) if line.startswith("{") else None
        except (ValueError, RecursionError):
            continue
        found.update(row if isinstance(row, dict) else {})
    return {name: value for name, value in found.items() if _is_figure(name, value)}


def _is_figure(name: str, value: object) -> bool:
    if name in _NUMBERS:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and math.isfinite(value) and 0 < value <= MOST_NUMBER  # type: ignore[arg-type,operator]
    if name == "cuda_error":
        return isinstance(value, str) and len(value) <= MOST_TEXT
    return name in {"cuda_starts", UNDER_LOAD} and isinstance(value, bool)


def main() -> None:
    """Run as the process of a trial: `gpu`, or `disk FOLDER`."""
    _, _, kind, *rest = sys.argv[1:]
    for found in _gpu() if kind == GPU else _disk(Path(rest[0])):
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


def _gpu() -> Iterator[Mapping[str, Any]]:
    started = _cuda()
    yield started
    if started.get("cuda_starts") is True and importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        if torch.cuda.is_available():
            yield from _speeds(torch)


def _cuda() -> Mapping[str, Any]:
    """Return whether CUDA makes a context on every GPU; nothing where the image has no library of the driver."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        calls: list[tuple[str, Callable[[], int]]] = [
            ("cuInit", lambda: int(library.cuInit(0))),
            ("cuDeviceGetCount", lambda: int(library.cuDeviceGetCount(ctypes.byref(count)))),
        ]
        failed = _failed(calls)
        for number in range(min(count.value, MOST_GPUS)):
            calls = [
                ("cuDeviceGet", lambda at=number: int(library.cuDeviceGet(ctypes.byref(device), at))),  # type: ignore[misc]
                (
                    "cuDevicePrimaryCtxRetain",
                    lambda: int(library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)),
                ),
            ]
            failed = failed or _failed(calls)
    except (OSError, AttributeError) as error:
        return {"cuda_error": str(error)[:MOST_TEXT]}
    if failed is None:
        return {"cuda_starts": True} if count.value else {"cuda_starts": False, "cuda_error": "CUDA finds no GPU"}
    name, code = failed
    known = {} if code in _OF_THE_IMAGE else {"cuda_starts": False}
    return {**known, "cuda_error": f"{name} answers {code}"}


def _failed(calls: Sequence[tuple[str, Callable[[], int]]]) -> tuple[str, int] | None:
    return next(((name, code) for name, call in calls if (code := call())), None)


def _speeds(torch: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - PyTorch of the image, if it has one
    """Yield the speed of the slowest GPU at multiplying, and of the first GPU at copying both ways."""
    count = min(torch.cuda.device_count(), MOST_GPUS)
    yield {"matmul_tflops": round(min(_multiplied(torch, f"cuda:{number}") for number in range(count)), 3)}
    here = torch.empty(COPY_BYTES, dtype=torch.uint8).pin_memory()
    devices = [f"cuda:{number}" for number in range(count)]
    loaded = [torch.empty(COPY_BYTES, dtype=torch.uint8, device=device) for device in devices]
    yield {UNDER_LOAD: True}
    _load(torch, here, dict(zip(devices, loaded)))
    yield {UNDER_LOAD: False}
    there = loaded[0]
    to_gpu = _rate(torch, "cuda:0", lambda: there.copy_(here, non_blocking=True), _SECONDS)
    yield {"copy_to_gpu_gbps": round(to_gpu * COPY_BYTES / 1e9, 3)}
    from_gpu = _rate(torch, "cuda:0", lambda: here.copy_(there, non_blocking=True), _SECONDS)
    yield {"copy_from_gpu_gbps": round(from_gpu * COPY_BYTES / 1e9, 3)}


def _multiplied(torch: Any, device: str) -> float:  # noqa: ANN401 - as above
    """Return tera-operations a second in products of matrices of 16 bits."""
    matrix = torch.ones((_SIDE, _SIDE), dtype=torch.float16, device=device)
    return _rate(torch, device, lambda: torch.matmul(matrix, matrix), _SECONDS) * 2 * _SIDE**3 / 1e12


def _load(torch: Any, here: Any, loaded: Mapping[str, Any]) -> None:  # noqa: ANN401 - as above
    """Copy to every GPU at once for a while: the link of an idle one is slow."""
    until = uptime() + _LOAD_SECONDS
    while uptime() < until:
        for there in loaded.values():
            there.copy_(here, non_blocking=True)
        for device in loaded:
            torch.cuda.synchronize(device)


def _rate(torch: Any, device: str, step: Callable[[], object], seconds: float) -> float:  # noqa: ANN401 - as above
    """Return the steps per second, after a first step that loads its libraries."""
    step()
    torch.cuda.synchronize(device)
    begun, steps = uptime(), 0
    while uptime() - begun < seconds:
        step()
        torch.cuda.synchronize(device)
        steps += 1
    return steps / (uptime() - begun)


def _disk(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield how fast new bytes reach the disk, in megabytes a second."""
    file = folder / f".written-{os.getpid()}"
    piece = os.urandom(1024 * 1024)
    try:
        with file.open("wb", buffering=0) as out:
            # The file loses its name while it is empty: a killed trial leaves no bytes.
            file.unlink()
            begun = uptime()
            for _ in range(DISK_BYTES // len(piece)):
                out.write(piece)
            os.fsync(out.fileno())
            seconds = max(uptime() - begun, 1e-6)
    except OSError:
        return
    yield {"disk_write_mbps": round(DISK_BYTES / 1e6 / seconds, 1)}


if __name__ == "__main__":
    main()
