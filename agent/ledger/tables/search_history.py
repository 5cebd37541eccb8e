"""The slices and the time of each search. With the price history, every answer can be reconstructed.

1. A look is kept as long as raw prices (`price_history.RAW_DAYS`), since neither is of use without the other.
2. Only the last facts of a slice are kept. Prices have a history of their own, and reliability and lines hardly change.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from agent.domain.market.offer import Offer
from agent.ledger import portable
from agent.ledger.tables import schema
from agent.ledger.tables.types import Query

Slice = tuple[str, str, int]
"""Market, host and number of GPUs."""
_PRICES = frozenset({"market", "host_id", "gpus", "ask", "floor", "seen_at"})
"""Fields of an offer that are in other columns or tables."""

SEEN = portable.stored(schema.looks)
KNOWN = portable.stored(schema.slices)
SLICES = sa.select(schema.slices)
REGIONS = sa.select(portable.json_text(schema.slices.c.facts, "$.region").label("region")).distinct()
PRUNED = (
    sa.delete(schema.looks).where(schema.looks.c.at < sa.bindparam("before")),
    sa.delete(schema.slices).where(schema.slices.c.seen_at < sa.bindparam("before")),
)


class Seen(msgspec.Struct, frozen=True):
    """One look at one market: its slices, as (host, GPUs)."""

    market: str
    at: datetime
    slices: tuple[tuple[str, int], ...]


def seen(offers: Iterable[Offer]) -> list[Seen]:
    """Return one look for each market of these offers, at the instant of the last row."""
    by_market: dict[str, list[Offer]] = {}
    for offer in offers:
        by_market.setdefault(offer.market, []).append(offer)
    return [
        Seen(market, max(row.seen_at for row in rows), tuple(sorted({(row.host_id, row.gpus) for row in rows})))
        for market, rows in by_market.items()
    ]


def row(look: Seen) -> dict[str, Any]:
    """Return the columns of a look."""
    return {"market": look.market, "at": look.at, "slices": [list(each) for each in look.slices]}


def look_of(columns: Mapping[str, Any]) -> Seen:
    """Return the look of a row."""
    return Seen(columns["market"], columns["at"], tuple((str(host), int(gpus)) for host, gpus in columns["slices"]))


def slice_row(offer: Offer) -> dict[str, Any]:
    """Return the columns of the slice of an offer."""
    facts = {name: value for name, value in msgspec.to_builtins(offer).items() if name not in _PRICES}
    key = {"market": offer.market, "host_id": offer.host_id, "gpus": offer.gpus}
    return {**key, "seen_at": offer.seen_at, "facts": facts}


def offer_of(columns: Mapping[str, Any]) -> Offer | None:
    """Return the last offer of a slice, without its prices; None if another release wrote it in another form."""
    key = {"market": columns["market"], "host_id": columns["host_id"], "gpus": columns["gpus"]}
    try:
        whole = {**columns["facts"], **key, "seen_at": columns["seen_at"], "ask": None, "floor": None}
        return msgspec.convert(whole, Offer)
    except msgspec.ValidationError:
        return None


def kept(offers: Iterable[Offer]) -> list[tuple[sa.Executable, list[dict[str, Any]]]]:
    """Return the statements that store a search, each with its rows; none for an empty search."""
    rows = {(each.market, each.host_id, each.gpus): each for each in offers}
    if not rows:
        return []
    return [(KNOWN, [slice_row(each) for each in rows.values()]), (SEEN, [row(each) for each in seen(rows.values())])]


def between(since: datetime | None, until: datetime | None) -> Query:
    """Return the query for looks from `since` up to but not at `until`, the oldest first."""
    table = schema.looks
    query = sa.select(table).order_by(table.c.at, table.c.market)
    query = query if since is None else query.where(table.c.at >= since)
    return query if until is None else query.where(table.c.at < until)
