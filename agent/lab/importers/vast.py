"""Saved answers of `vastai search offers --raw`, a folder of JSON files: one pool per GPU model and number of GPUs.

The instant of a file is `--at`, else the one in its name (20261120T180000, 2026-11-20_18-00), else the file's own time.
`available` is the number of rentable offers with a bid price. The prices are the lowest of these offers. A search shows
a sample of the market, so a count is a minimum.
"""

import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent.domain.market import gpu as gpus
from agent.lab.importers.even_ticks import Pool, Seen, price, trace, wrong
from agent.lab.traces.trace_files import Trace

_IN_NAME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T_ -]?(\d\d)[-:h]?(\d\d)(?:[-:m]?(\d\d))?")


def read(files: list[Path], gap_seconds: int | None = None, at: datetime | None = None) -> list[Trace]:
    """Return the traces of saved searches, one for each pool. A pool that is missing in a search had no capacity then.

    Raises:
        ConfigError: a file is no saved search; the problem names the offer and its key.
    """
    looks = [(_instant(file, at), file, _pools(file)) for each in files for file in _files(each)]
    pools = sorted({pool for _, _, pools_seen in looks for pool in pools_seen}, key=lambda pool: (pool.name, pool.gpus))
    if not pools:
        raise wrong(files[0], 1, "file", "contains no offer of a GPU; save the output of vastai search offers --raw")
    rows: dict[Pool, list[Seen]] = defaultdict(list)
    for instant, _, pools_seen in looks:
        for pool in pools:
            available, spot, ask = pools_seen.get(pool, (0, None, None))
            rows[pool].append(Seen(instant, available, spot, ask))
    return [trace(files[0], pool, rows[pool], gap_seconds) for pool in pools]


def _files(place: Path) -> list[Path]:
    paths = sorted(place.glob("*.json")) if place.is_dir() else [place]
    if not paths:
        raise wrong(place, 1, "folder", "contains no .json file; name a folder of saved searches")
    return paths


def _instant(file: Path, at: datetime | None) -> datetime:
    if at is not None:
        return at
    written = _IN_NAME.search(file.stem)
    try:
        if written is not None:
            return datetime(*(int(part or 0) for part in written.groups()), tzinfo=UTC)  # type: ignore[arg-type,misc]
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except (ValueError, OSError) as error:
        raise wrong(
            file, 1, "name", f"has no instant in its name ({error}); name it such as 20261120T180000.json"
        ) from error


def _pools(file: Path) -> dict[Pool, tuple[int, float | None, float | None]]:
    """Return (offers that can be bid for, lowest bid price, lowest on-demand price) of each pool of one search."""
    found: dict[Pool, tuple[int, float | None, float | None]] = {}
    for number, offer in enumerate(_offers(file)):
        where = f"offers[{number}]"
        if not isinstance(offer, dict) or not isinstance(offer.get("gpu_name"), str):
            raise wrong(file, 1, f"{where}.gpu_name", "is missing; save the output of vastai search offers --raw whole")
        count = offer.get("num_gpus")
        if not isinstance(count, int) or not 1 <= count <= 1024:  # noqa: PLR2004 - as in a trace file
            raise wrong(file, 1, f"{where}.num_gpus", "is no number of GPUs; save the search's output whole")
        model = gpus.model(offer["gpu_name"])
        pool = Pool(f"{count}x {model}", model, count)
        available, spot, ask = found.get(pool, (0, None, None))
        floor = price(file, 1, f"{where}.min_bid", offer.get("min_bid"))
        if offer.get("rentable") is not False and floor is not None:
            available, spot = available + 1, floor if spot is None else min(spot, floor)
        asked = None if offer.get("is_bid") else offer.get("dph_base", offer.get("dph_total"))
        asked_price = price(file, 1, f"{where}.dph_total", asked)
        ask = asked_price if ask is None else ask if asked_price is None else min(ask, asked_price)
        found[pool] = available, spot, ask
    return found


def _offers(file: Path) -> list[Any]:
    try:
        whole = json.loads(file.read_bytes())
    except OSError as error:
        raise wrong(file, 1, "file", f"cannot be read ({error.strerror}); name a file") from error
    except json.JSONDecodeError as error:
        raise wrong(file, error.lineno, "file", f"is no JSON ({error.msg}); save the search's output whole") from error
    except UnicodeDecodeError:
        raise wrong(file, 1, "file", "is no UTF-8 text; save the search's output whole") from None
    offers = whole.get("offers") if isinstance(whole, dict) else whole
    if not isinstance(offers, list):
        raise wrong(file, 1, "offers", "is no list; save the output of vastai search offers --raw")
    return offers
