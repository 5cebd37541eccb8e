"""Answers that lie in one field or one row, as both markets have been seen to lie or might.

A lie never gives a foreign instance our own label in two answers, and no wrong state lasts longer than its strike.
Nobody could detect a lie that contradicts the truth everywhere and for ever.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent.markets.http_exchange import Reply

Rows = list[dict[str, Any]]

PRICES = {"vast": ("dph_base", "dph_total"), "runpod": ("cost",)}
LABEL = {"vast": "label", "runpod": "name"}
HOST = {"vast": "machine_id", "runpod": "dataCenterId"}
STATES = {
    "vast": (
        ("actual_status", "exited"),
        ("actual_status", "offline"),
        ("cur_state", "stopped"),
        ("actual_status", "?"),
    ),
    "runpod": (("status", "EXITED"), ("status", "TERMINATED"), ("status", "?"), ("status", "STARTING")),
}
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
    return frozenset(str(row["id"]) for row in rows or ())


def _rows(body: Any) -> Rows | None:
    """Return the rows of a listing, or the one row of a look in a list that is not the body's own."""
    if isinstance(body, dict):
        for name in ("instances", "pods"):
            if isinstance(body.get(name), list):
                return body[name]
            if isinstance(body.get(name), dict):
                return [body[name]]
        return [body] if "id" in body else None
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
    row = _row(rows, amount)
    row["id"] = row["id"] + 1 if market == "vast" else "x" + str(row["id"])[1:]


def _label(market: str, rows: Rows, amount: float, other: str) -> None:
    texts = (None, "somebody else's", other, other)
    _row(rows, amount)[LABEL[market]] = texts[int(amount) % 4] or ""


def _price(market: str, rows: Rows, amount: float, _: str) -> None:
    for row in rows:
        for name in PRICES[market]:
            if amount == ABSENT:
                row.pop(name, None)
            elif name in row:
                row[name] = FACTOR_WORDS.get(amount, row[name] * amount)


def _state(market: str, rows: Rows, amount: float, _: str) -> None:
    name, word = STATES[market][int(amount) % 4]
    _row(rows, amount)[name] = word


def _host(market: str, rows: Rows, amount: float, _: str) -> None:
    _row(rows, amount)[HOST[market]] = 4711 if market == "vast" else "XX-YY-1"


def _twice(_market: str, rows: Rows, amount: float, _: str) -> None:
    rows.append(dict(_row(rows, amount)))


def _missing_row(_market: str, rows: Rows, amount: float, _: str) -> None:
    rows.remove(_row(rows, amount))


def _empty(_market: str, rows: Rows, _amount: float, _: str) -> None:
    rows.clear()


_LIES: Mapping[str, Callable[[str, Rows, float, str], None]] = {
    "id": _id,
    "label": _label,
    "price": _price,
    "state": _state,
    "host": _host,
    "twice": _twice,
    "missing_row": _missing_row,
    "empty": _empty,
}
OF_ROWS = frozenset(_LIES)
