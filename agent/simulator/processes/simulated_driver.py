"""The `nvidia-smi` of a simulated container, as a separate program. Standard library only.

It answers `--query-gpu=FIELDS --format=csv` for the GPUs in SIM_GPUS, as the driver's manual describes. A value that a
card does not have is [N/A]. A field that the driver does not know ends the program.
"""

import json
import os
import sys
from typing import Any

NOT_THERE = "[N/A]"
FAILED = 9
UNKNOWN_FIELD = 2
_UNITS = {"memory.total": " MiB", "power.limit": " W", "power.default_limit": " W"}


def main() -> int:
    """Answer one question; return the exit code."""
    words = (word.lstrip("-").partition("=") for word in sys.argv[1:])
    options = {name: value for name, _, value in words}
    try:
        gpus = json.loads(os.environ["SIM_GPUS"])
    except (KeyError, ValueError):
        _say("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
        return FAILED
    names, form = options.get("query-gpu", "name").split(","), options.get("format", "csv").split(",")
    values = _values(gpus)
    for name in names:
        if name not in values:
            _say(f'Field "{name}" is not a valid field to query.\n')
            return UNKNOWN_FIELD
    if gpus["count"] == 0:
        _say("No devices were found")
        return 6
    if "noheader" not in form:
        _say(", ".join(names))
    row = ", ".join(values[name] + ("" if "nounits" in form else _UNITS.get(name, "")) for name in names)
    _say("\n".join([row] * gpus["count"]))
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _values(gpus: dict[str, Any]) -> dict[str, str]:
    """Return the text of every field of one card. The PCIe link is slow, as on an idle card."""
    power = f"{gpus['power_watts']:.2f}"
    return {
        "name": gpus["name"],
        "count": str(gpus["count"]),
        "memory.total": str(gpus["memory_mb"]),
        "driver_version": gpus["driver"],
        "mig.mode.current": NOT_THERE,
        "ecc.errors.uncorrected.volatile.total": str(gpus["errors"]) if gpus["errors"] else NOT_THERE,
        "power.limit": power,
        "power.default_limit": power,
        "pcie.link.gen.current": "1",
        "pcie.link.gen.max": "4",
        "pcie.link.width.current": "16",
        "pcie.link.width.max": "16",
        "clocks_throttle_reasons.active": "0x0000000000000001",
        "temperature.gpu": "35",
        "utilization.gpu": f"{gpus.get('use', NOT_THERE)}",
    }


if __name__ == "__main__":
    sys.exit(main())
