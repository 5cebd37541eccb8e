"""Our own export (`gpubid lab record`): one pool for each market, GPU model and number of GPUs.

`available` is the number of hosts with a floor in the last search. The prices are the lowest of those hosts at that
instant. A search shows only hosts that met a workload's requirements.
"""

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.lab.importers.even_ticks import Pool, Seen, instant, price, trace, wrong
from agent.lab.traces.ledger_export import KIND, VERSION
from agent.lab.traces.trace_files import Trace

Slice = tuple[str, str, int]
STEP_SECONDS = 300


def read(files: list[Path], gap_seconds: int | None = None) -> list[Trace]:
    """Return the traces of exports, one for each pool. By default a tick is five minutes.

    Raises:
        ConfigError: a file is no export; the problem names the line and the key.
    """
    found: list[Trace] = []
    for file in files:
        found += [trace(file, pool, seen, gap_seconds or STEP_SECONDS) for pool, seen in _pools(file).items()]
    return found


def _pools(file: Path) -> dict[Pool, list[Seen]]:
    models: dict[Slice, str] = {}
    moments: list[tuple[datetime, int, str, Slice, tuple[float | None, float | None]]] = []
    looks: list[tuple[datetime, str, list[Slice]]] = []
    for line, row in _rows(file):
        if row.get("kind") == "price":
            key = (_text(file, line, row, "market"), _text(file, line, row, "host"), _count(file, line, row))
            models[key] = _text(file, line, row, "gpu")
            pair = price(file, line, "floor", row.get("floor")), price(file, line, "ask", row.get("ask"))
            moments.append((instant(file, line, "at", row.get("at")), line, "price", key, pair))
        elif row.get("kind") == "look":
            market = _text(file, line, row, "market")
            looks.append((instant(file, line, "at", row.get("at")), market, _slices(file, line, market, row)))
    if not looks:
        raise wrong(file, 1, "look", "there is none; record a ledger that has searched for offers")
    return _seen(sorted(moments, key=lambda each: each[:2]), sorted(looks, key=lambda each: each[0]), models)


def _seen(moments: list[Any], looks: list[Any], models: dict[Slice, str]) -> dict[Pool, list[Seen]]:
    found: dict[Pool, list[Seen]] = defaultdict(list)
    prices: dict[Slice, tuple[float | None, float | None]] = {}
    place = 0
    pools = {(key[0], model, key[2]) for key, model in models.items()}
    for at, market, slices in looks:
        while place < len(moments) and moments[place][0] <= at:
            prices[moments[place][3]] = moments[place][4]
            place += 1
        for of_market, model, gpus in pools:
            if of_market != market:
                continue
            mine = [prices[key] for key in slices if key in prices and (models[key], key[2]) == (model, gpus)]
            floors, asks = [one for one, _ in mine if one is not None], [one for _, one in mine if one is not None]
            pool = Pool(f"{market} {gpus}x {model}", model, gpus)
            found[pool].append(Seen(at, len(floors), min(floors, default=None), min(asks, default=None)))
    return dict(found)


def _rows(file: Path) -> list[tuple[int, dict[str, Any]]]:
    rows = []
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise wrong(file, 1, "file", f"cannot be read ({error}); name a file that gpubid lab record wrote") from error
    for line, each in enumerate(text.splitlines(), start=1):
        try:
            row = json.loads(each)
        except json.JSONDecodeError as error:
            raise wrong(file, line, "line", f"is no JSON ({error.msg}); record it anew") from error
        if not isinstance(row, dict):
            raise wrong(file, line, "line", "is no object; record it anew")
        rows.append((line, row))
    head = rows[0][1] if rows else {}
    if (head.get("kind"), head.get("version")) != (KIND, VERSION):
        raise wrong(file, 1, "kind", f"is no {KIND} of version {VERSION}; name a file that gpubid lab record wrote")
    return rows


def _text(file: Path, line: int, row: dict[str, Any], key: str) -> str:
    if not isinstance(row.get(key), str) or not row[key]:
        raise wrong(file, line, key, "is missing; record it anew")
    return str(row[key])


def _slices(file: Path, line: int, market: str, row: dict[str, Any]) -> list[Slice]:
    try:
        return [(market, str(host), int(gpus)) for host, gpus in row.get("slices", [])]
    except (TypeError, ValueError, OverflowError):
        raise wrong(file, line, "slices", "are no pairs of a host and a number of GPUs; record it anew") from None


def _count(file: Path, line: int, row: dict[str, Any]) -> int:
    if not isinstance(row.get("gpus"), int) or row["gpus"] < 1:
        raise wrong(file, line, "gpus", "is no number of GPUs; record it anew")
    return int(row["gpus"])
