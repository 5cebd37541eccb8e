"""The listing of instances: pages of at most 25, filters on stored columns only, and single records."""

import base64
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from agent.simulator.api_calls import Reply
from agent.simulator.market_model import Refusal
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call
from agent.simulator.vast.http import filter_grammar, records
from agent.simulator.vast.http.surface import Surface

MOST_PER_PAGE = 25
FEWEST_PER_PAGE = 5

Row = dict[str, Any]
Order = Sequence[tuple[str, bool]]  # column, is it descending


class _BadQueryError(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def show_all(surface: Surface, call: Call) -> Reply:
    """Answer one page of the list."""
    if call.version == 0:
        return calls.refuse(410, "deprecated_endpoint", "Use /api/v1/instances/ instead")
    rows = _rows(surface, call)
    try:
        return calls.ok(_page(rows, call))
    except _BadQueryError as bad:
        return calls.refuse(400, bad.code, str(bad))


def show_one(surface: Surface, call: Call) -> Reply:
    """Answer one record under the key `instances`; for an unknown id it is null, with status 200."""
    surface.world.settle()
    try:
        row = surface.records.record(surface.contract(call, call.id))
    except Refusal:
        return calls.ok({"instances": None})
    _hide_status([row], call)
    return calls.ok({"instances": row})


def show_filters(surface: Surface, call: Call) -> Reply:
    """Answer the values by which the list may be narrowed."""
    seen = {
        (records.actual_status(contract), contract.host.verification, contract.host.gpu.name)
        for contract in surface.contracts(call)
    }
    keys = ("actual_status", "verification", "gpu_name")
    return calls.success(filters=[dict(zip(keys, values, strict=True)) for values in sorted(seen, key=str)])


def _rows(surface: Surface, call: Call) -> list[Row]:
    surface.world.settle()
    if "empty_list" in call.struck:
        return []
    if (stale := call.struck.get("stale_list")) is not None and "wrong_account" not in call.struck:
        rows = [dict(row) for row in surface.frozen(stale)]
    else:
        rows = [surface.records.record(contract) for contract in surface.contracts(call)]
    if (partial := call.struck.get("partial_list")) is not None:
        # The newest go missing first: the rows whose absence tempts a client most.
        rows = rows[: int(len(rows) * partial.number("keep", 0.5))]
    _hide_status(rows, call)
    return rows


def _hide_status(rows: Sequence[Row], call: Call) -> None:
    if (unknown := call.struck.get("unknown_status")) is not None:
        for row in rows:
            row["actual_status"] = unknown.extra.get("status", "unknown")


def _page(rows: list[Row], call: Call) -> Mapping[str, Any]:
    filters = _json(call, "select_filters", {})
    order = _order(_json(call, "order_by", []), rows)
    if filters:
        rows = _filtered(rows, filters)
    total = len(rows)
    counts: dict[str, int] = {}
    for row in rows:
        label = row["label"] or ""
        counts[label] = counts.get(label, 0) + 1
    if order != [("id", False)]:
        rows = sorted(rows, key=functools.cmp_to_key(_comparison(order)))
    if token := call.query.get("after_token"):
        last = _open_token(token, order)
        compare = _comparison(order)
        rows = [row for row in rows if compare(row, last) > 0]
    limit = _limit(call.query.get("limit"))
    shown = rows[:limit]
    return {
        "success": True,
        "instances_found": len(shown),
        "total_instances": total,
        "label_counts": counts,
        "next_token": _token(shown[-1], order) if len(rows) > limit else None,
        "instances": _columns(shown, _json(call, "select_cols", ["*"])),
    }


def _json(call: Call, key: str, default: Any) -> Any:  # noqa: ANN401 - JSON is any
    text = call.query.get(key)
    if not text:
        return default
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise _BadQueryError("invalid_request", f"Error in query parameters: {key} is not valid JSON") from error
    if value is None:
        return default
    if not isinstance(value, type(default)):
        raise _BadQueryError("invalid_request", f"Error in query parameters: {key} has the wrong shape")
    return value


def _limit(text: str | None) -> int:
    number = filter_grammar.to_number(text) if text else float(MOST_PER_PAGE)
    if number is None:
        return MOST_PER_PAGE
    return FEWEST_PER_PAGE if number <= 0 else min(int(number), MOST_PER_PAGE)


def _check_column(name: str, rows: Sequence[Row]) -> None:
    if name in records.COMPUTED or (rows and name not in rows[0]):
        raise _BadQueryError("invalid_request", f"Error in query parameters: {name} is not a valid search key")


def _filtered(rows: list[Row], filters: Mapping[str, Any]) -> list[Row]:
    for name, conditions in filters.items():
        _check_column(name, rows)
        if not isinstance(conditions, dict) or not conditions.keys() <= filter_grammar.OPERATORS:
            raise _BadQueryError("invalid_request", f"Error in query parameters: {name} has no valid operator")
        for key, value in conditions.items():
            test = filter_grammar.compile_one(key, value)
            rows = [row for row in rows if test(row[name])]
    return rows


def _order(directives: Sequence[Any], rows: Sequence[Row]) -> list[tuple[str, bool]]:
    order: list[tuple[str, bool]] = []
    for directive in directives:
        if not isinstance(directive, dict) or not isinstance(directive.get("col"), str):
            raise _BadQueryError("invalid_request", "Error in query parameters: order_by has the wrong shape")
        _check_column(directive["col"], rows)
        order.append((directive["col"], directive.get("dir") == "desc"))
    if not any(name == "id" for name, _ in order):
        order.append(("id", False))
    return order


def _comparison(order: Order) -> Callable[[Row, Row], int]:
    def compare(one: Row, other: Row) -> int:
        for name, is_descending in order:
            left, right = _rank(one.get(name)), _rank(other.get(name))
            if left != right:
                return (1 if left > right else -1) * (-1 if is_descending else 1)
        return 0

    return compare


def _rank(cell: object) -> tuple[int, float, str]:
    if cell is None:
        return (2, 0.0, "")
    return (0, float(cell), "") if isinstance(cell, int | float) else (1, 0.0, str(cell))


def _token(row: Row, order: Order) -> str:
    return base64.b64encode(msgspec.json.encode({"values": {name: row.get(name) for name, _ in order}})).decode()


def _open_token(token: str, order: Order) -> Row:
    try:
        values = msgspec.json.decode(base64.b64decode(token, validate=True))["values"]
        return {name: values[name] for name, _ in order}
    except (ValueError, KeyError, TypeError) as error:
        raise _BadQueryError("invalid_token", "Invalid pagination token") from error


def _columns(rows: list[Row], wanted: Sequence[Any]) -> list[Row]:
    if not wanted or "*" in wanted:
        return rows
    return [{str(name): row.get(str(name)) for name in wanted} for row in rows]
