"""Answers that lie in one field or one row, as both markets have been seen to lie or might.

A lie never gives a foreign instance our own label in two answers, and no wrong state lasts longer than its strike.
Nobody could detect a lie that contradicts the truth everywhere and for ever.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent.markets import labels
from agent.markets.http_exchange import Reply
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.clouds import cloud_lies
from tests.disasters.clouds.cloud_draw import MARKET as CLOUDS

Row = dict[str, Any]
Rows = list[Row]

STATES = {
    "vast": (
        ("actual_status", "exited"),
        ("actual_status", "offline"),
        ("cur_state", "stopped"),
        ("actual_status", "?"),
    ),
    "runpod": (("status", "EXITED"), ("status", "TERMINATED"), ("status", "?"), ("status", "STARTING")),
    MARKET: (("status", "Open"), ("status", "Paused"), ("status", "Terminated"), ("status", "?")),
}
PAID = (1000.0, 2.0, 0.1, None)
"""Factors of the price that was paid; None leaves it out."""
MACHINE_STATES = ("STATUS_PAUSED", "STATUS_ERROR", "STATUS_PREEMPTED", "?")
LIMITS = ("$0.01", "$31.00", "much", None)
"""Limits of a bid that are not its own."""
UNTOLD = ("lowest_allocated_bid_cents", "dynamic_win_price_cents", "available_capacity", "spot_price_cents")
HIDING = dict.fromkeys(("vast", "runpod", CLOUDS), frozenset({"empty", "missing_row", "stale", "id"}))
HIDING[MARKET] = HIDING["vast"] | {"state"}
"""Lies of a listing by which instances vanish. A bid that is said to have ended does."""
FACTOR_WORDS: Mapping[float, Any] = {-1.0: math.nan, -2.0: "a lot"}
ABSENT = -3.0


def told(market: str, fault: str, reply: Reply, amount: float, other_label: str) -> Reply:
    """Return a listing, or one instance, with a lie in it."""
    body = msgspec.json.decode(reply.body)
    rows = _rows(body)
    if rows is None:
        return reply
    lie = _LIES[fault]
    if rows or fault == "empty":
        lie(market, rows, amount, other_label)
        if isinstance(body, dict):
            for name in ("total_instances", "instances_found"):
                if name in body:
                    body[name] = len(rows)
    return Reply(reply.status, reply.headers, _encoded(body))


def ids(reply: Reply) -> frozenset[str]:
    """Return the ids in a listing; none of an answer that is no listing."""
    rows = _rows(msgspec.json.decode(reply.body)) if reply.is_ok else None
    return frozenset(str(row.get("id") or row.get("fid")) for row in rows or ())


def _rows(body: Any) -> Rows | None:
    """Return the rows of a listing, or the one row of a look in a list that is not the body's own."""
    if isinstance(body, dict) and {"limit_price", "project_id"} & body.keys():
        return [body]
    if isinstance(body, dict):
        for name in ("instances", "pods", "data"):
            if isinstance(body.get(name), list):
                return body[name]
            if isinstance(body.get(name), dict):
                return [body[name]]
        return [body] if {"id", "fid", "spot_price_cents"} & body.keys() else None
    return body if isinstance(body, list) else None


def _encoded(body: Any) -> bytes:
    # msgspec writes no NaN; the market's own programs do.
    return msgspec.json.encode(_marked(body)).replace(b'"\\u0000NaN"', b"NaN")


def _marked(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "\0NaN"
    if isinstance(value, dict):
        return {key: _marked(each) for key, each in value.items()}
    return [_marked(each) for each in value] if isinstance(value, list) else value


def _row(rows: Rows, amount: float) -> dict[str, Any]:
    return rows[int(abs(amount)) % len(rows)]


def _id(market: str, rows: Rows, amount: float, _: str) -> None:
    _IDENTITIES[market](_row(rows, amount))


def _label(market: str, rows: Rows, amount: float, other: str) -> None:
    _LABELS[market](_row(rows, amount), amount, other)


def _price(market: str, rows: Rows, amount: float, _: str) -> None:
    for row in rows:
        _PRICED[market](row, amount)


def _state(market: str, rows: Rows, amount: float, _: str) -> None:
    _STATED[market](_row(rows, amount), amount)


def _host(market: str, rows: Rows, amount: float, _: str) -> None:
    _PLACED[market](_row(rows, amount))


def _limit(_market: str, rows: Rows, amount: float, _: str) -> None:
    _row(rows, amount)["limit_price"] = LIMITS[int(amount) % 4]


def _paid(_market: str, rows: Rows, amount: float, _: str) -> None:
    """The prices that a machine paid are told wrong."""
    factor = PAID[int(amount) % len(PAID)]
    for event in [event for row in rows for event in row.get("events", ())]:
        event["price_cents"] = None if factor is None else round(event["price_cents"] * factor)


def _untold(_market: str, rows: Rows, amount: float, _: str) -> None:
    """The market tells less of a pool than it did, as in all recorded prices."""
    for row in rows:
        row |= {name: None for name in UNTOLD[: 2 + int(amount) % 3] if name in row}


def _term(market: str, rows: Rows, amount: float, _: str) -> None:
    """The disk's price, the end of the contract or the traffic is told wrong, of all rows."""
    for row in rows:
        _TERMS[market][int(amount) % len(_TERMS[market])](row)


def _twice(_market: str, rows: Rows, amount: float, _: str) -> None:
    rows.append(dict(_row(rows, amount)))


def _missing_row(_market: str, rows: Rows, amount: float, _: str) -> None:
    rows.remove(_row(rows, amount))


def _empty(_market: str, rows: Rows, _amount: float, _: str) -> None:
    rows.clear()


def _deleted(_market: str, rows: Rows, amount: float, _: str) -> None:
    cloud_lies.deleted(_row(rows, amount))


def _no_cloud(_market: str, rows: Rows, amount: float, _: str) -> None:
    cloud_lies.without_cloud(_row(rows, amount), amount)


# --- the fields of each market --------------------------------------------------------------------------------------
def _contract_identity(row: Row) -> None:
    row["id"] += 1


def _text_identity(name: str) -> Callable[[Row], None]:
    def changed(row: Row) -> None:
        row[name] = "x" + str(row[name])[1:]

    return changed


def _labelled(name: str) -> Callable[[Row, float, str], None]:
    def changed(row: Row, amount: float, other: str) -> None:
        row[name] = (None, "somebody else's", other, other)[int(amount) % 4] or ""

    return changed


def _bid_labelled(row: Row, amount: float, other: str) -> None:
    read = labels.parse(other)
    _labelled("name")(row, amount, other if read is None else labels.short_text(read))


def _priced(*names: str) -> Callable[[Row, float], None]:
    def changed(row: Row, amount: float) -> None:
        for name in names:
            if amount == ABSENT:
                row.pop(name, None)
            elif name in row:
                row[name] = _changed_price(row[name], amount)

    return changed


def _run_priced(row: Row, amount: float) -> None:
    cloud_lies.price(row, lambda told: _changed_price(told, amount), is_left_out=amount == ABSENT)


def _changed_price(told: float, amount: float) -> Any:
    return FACTOR_WORDS.get(amount, told * amount)


def _stated(states: tuple[tuple[str, str], ...]) -> Callable[[Row, float], None]:
    def changed(row: Row, amount: float) -> None:
        name, word = states[int(amount) % 4]
        row[name] = MACHINE_STATES[int(amount) % 4] if "ssh_destination" in row else word

    return changed


def _grown(name: str, factor: float) -> Callable[[Row], None]:
    def changed(row: Row) -> None:
        if isinstance(row.get(name), int | float):
            row[name] *= factor

    return changed


def _grown_disk(factor: float) -> Callable[[Row], None]:
    """Return a change of both figures that show a disk's price: two others would contradict one of them."""
    total = _grown("storage_total_cost", factor)

    def changed(row: Row) -> None:
        total(row)
        if isinstance(row.get("search"), dict):
            row["search"] = dict(row["search"])
            _grown("diskHour", factor)(row["search"])

    return changed


def _placed(name: str, place: Any) -> Callable[[Row], None]:
    return lambda row: row.update({name: place})


_IDENTITIES: Mapping[str, Callable[[Row], None]] = {
    "vast": _contract_identity,
    "runpod": _text_identity("id"),
    MARKET: _text_identity("fid"),
    CLOUDS: cloud_lies.identity,
}
_LABELS: Mapping[str, Callable[[Row, float, str], None]] = {
    "vast": _labelled("label"),
    "runpod": _labelled("name"),
    MARKET: _bid_labelled,
    CLOUDS: cloud_lies.label,
}
_PRICED: Mapping[str, Callable[[Row, float], None]] = {
    "vast": _priced("dph_base", "dph_total"),
    "runpod": _priced("cost"),
    CLOUDS: _run_priced,
}
_STATED: Mapping[str, Callable[[Row, float], None]] = {
    **{market: _stated(states) for market, states in STATES.items()},
    CLOUDS: cloud_lies.state,
}
_PLACED: Mapping[str, Callable[[Row], None]] = {
    "vast": _placed("machine_id", 4711),
    "runpod": _placed("dataCenterId", "XX-YY-1"),
    MARKET: _placed("region", "xx-yy-1"),
    CLOUDS: cloud_lies.place,
}
_TERMS: Mapping[str, tuple[Callable[[Row], None], ...]] = {
    "vast": (
        _grown_disk(1e3),
        _grown_disk(1e6),
        _grown("inet_down_billed", 1e4),
        _grown("inet_up_billed", 1e6),
        _placed("end_date", 1.0),
    ),
}
"""The false terms of a lease, each in every field that shows it."""
_LIES: Mapping[str, Callable[[str, Rows, float, str], None]] = {
    "id": _id,
    "label": _label,
    "price": _price,
    "state": _state,
    "limit": _limit,
    "paid": _paid,
    "untold": _untold,
    "host": _host,
    "term": _term,
    "twice": _twice,
    "missing_row": _missing_row,
    "empty": _empty,
    "deleted": _deleted,
    "no_cloud": _no_cloud,
}
OF_ROWS = frozenset(_LIES)
