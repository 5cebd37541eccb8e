"""AWS spot prices as `aws ec2 describe-spot-price-history` prints them: one pool per zone, instance type and product.

AWS shows prices, not capacity: `available` is 1 from the first price on. The import prints this assumption.
"""

import json
from pathlib import Path
from typing import Any

from agent.lab.importers.even_ticks import Pool, Seen, instant, price, trace, wrong
from agent.lab.traces.trace_files import Trace

LIST = "SpotPriceHistory"
NEEDED = ("AvailabilityZone", "InstanceType", "SpotPrice", "Timestamp")
STEP_SECONDS = 300


def read(files: list[Path], gap_seconds: int | None = None) -> list[Trace]:
    """Return the traces of price histories, one for each pool. By default a tick is five minutes.

    Raises:
        ConfigError: a file is no such history; the problem names the entry and its key.
    """
    found: dict[Pool, tuple[Path, list[Seen]]] = {}
    gap = gap_seconds or STEP_SECONDS
    for file in files:
        for number, entry in enumerate(_entries(file)):
            pool, seen = _seen(file, f"{LIST}[{number}]", entry)
            found.setdefault(pool, (file, []))[1].append(seen)
    return [trace(file, pool, seen, gap, is_held=True) for pool, (file, seen) in found.items()]


def _entries(file: Path) -> list[Any]:
    try:
        whole = json.loads(file.read_bytes())
    except OSError as error:
        raise wrong(file, 1, "file", f"cannot be read ({error.strerror}); name a file") from error
    except json.JSONDecodeError as error:
        raise wrong(file, error.lineno, "file", f"is no JSON ({error.msg}); save the command's output whole") from error
    except UnicodeDecodeError:
        raise wrong(file, 1, "file", "is no UTF-8 text; save the command's output whole") from None
    entries = whole.get(LIST) if isinstance(whole, dict) else None
    if not isinstance(entries, list) or not entries:
        raise wrong(file, 1, LIST, "is missing or empty; save the output of describe-spot-price-history as JSON")
    return entries


def _seen(file: Path, where: str, entry: object) -> tuple[Pool, Seen]:
    if not isinstance(entry, dict):
        raise wrong(file, 1, where, "is no object; save the command's output whole")
    for key in NEEDED:
        if not isinstance(entry.get(key), str | int | float):
            raise wrong(file, 1, f"{where}.{key}", "is missing; save the command's output whole")
    product = str(entry.get("ProductDescription") or "")
    name = " ".join(part for part in (str(entry["AvailabilityZone"]), str(entry["InstanceType"]), product) if part)
    at = instant(file, 1, f"{where}.Timestamp", entry["Timestamp"])
    return Pool(name), Seen(at, 1, price(file, 1, f"{where}.SpotPrice", entry["SpotPrice"]))
