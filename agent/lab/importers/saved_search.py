"""Saved answers of a market's search for offers, a folder of JSON files: one pool per GPU model and number of GPUs.

The instant of a file is `--at`, else the one in its name (20261120T180000, 2026-11-20_18-00), else the file's own time.
`available` is the number of rentable offers with a bid price. The prices are the lowest of these offers. A search shows
a sample of the market, so a count is a minimum.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from agent.domain.market import gpu as gpus
from agent.lab.importers.even_ticks import Pool, Seen, price, trace, wrong
from agent.lab.traces.trace_files import Trace
from agent.markets.market_record import Figure, SavedOffer, SavedSearches, UnreadableAnswer

_IN_NAME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T_ -]?(\d\d)[-:h]?(\d\d)(?:[-:m]?(\d\d))?")


def read(
    files: list[Path], saved: SavedSearches, gap_seconds: int | None = None, at: datetime | None = None
) -> list[Trace]:
    """Return the traces of saved searches, one for each pool. A pool that is missing in a search had no capacity then.

    Raises:
        ConfigError: a file is no saved search; the problem names the offer and its key.
    """
    looks = [(_instant(file, at), file, _pools(file, saved)) for each in files for file in _files(each)]
    pools = sorted({pool for _, _, pools_seen in looks for pool in pools_seen}, key=lambda pool: (pool.name, pool.gpus))
    if not pools:
        raise wrong(files[0], 1, "file", f"contains no offer of a GPU; save the output of {saved.command}")
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


def _pools(file: Path, saved: SavedSearches) -> dict[Pool, tuple[int, float | None, float | None]]:
    """Return (offers that can be bid for, lowest bid price, lowest on-demand price) of each pool of one search."""
    found: dict[Pool, tuple[int, float | None, float | None]] = {}
    for offer in _offers(file, saved):
        model = gpus.model(offer.gpu)
        pool = Pool(f"{offer.gpus}x {model}", model, offer.gpus)
        available, spot, ask = found.get(pool, (0, None, None))
        floor = _price(file, offer, offer.lowest_bid)
        if offer.is_rentable and floor is not None:
            available, spot = available + 1, floor if spot is None else min(spot, floor)
        asked = _price(file, offer, offer.ask)
        ask = asked if ask is None else ask if asked is None else min(ask, asked)
        found[pool] = available, spot, ask
    return found


def _price(file: Path, offer: SavedOffer, figure: Figure) -> float | None:
    return price(file, 1, f"{offer.where}.{figure.key}", figure.value)


def _offers(file: Path, saved: SavedSearches) -> Sequence[SavedOffer]:
    try:
        return saved.offers(json.loads(file.read_bytes()))
    except OSError as error:
        raise wrong(file, 1, "file", f"cannot be read ({error.strerror}); name a file") from error
    except json.JSONDecodeError as error:
        raise wrong(file, error.lineno, "file", f"is no JSON ({error.msg}); save the search's output whole") from error
    except UnicodeDecodeError:
        raise wrong(file, 1, "file", "is no UTF-8 text; save the search's output whole") from None
    except UnreadableAnswer as unreadable:
        raise wrong(file, 1, unreadable.key, str(unreadable)) from None
