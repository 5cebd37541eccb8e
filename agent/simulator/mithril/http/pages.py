"""Lists in pages: `data` and `next_cursor`, which is null on the last page."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agent.simulator.api_calls import Reply
from agent.simulator.mithril.http import calls
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.model import Refused

MOST_ROWS = 100
_R = TypeVar("_R")


def page(
    call: Call, rows: Sequence[_R], number_of: Callable[[_R], int], view: Callable[[_R], dict[str, Any]], key: str
) -> Reply:
    """Answer one page of `rows`, which have rising numbers; the newest come first unless it is asked for otherwise."""
    most = call.number("limit", 1, MOST_ROWS, MOST_ROWS)
    if (fault := call.struck.get("paged_list")) is not None:
        most = min(most, int(fault.number("rows", 2.0)))
    is_rising = call.choice("sort_dir", ("asc", "desc")) == "asc"
    last = _read(call.query.get("next_cursor"))
    ranked = sorted(rows, key=number_of, reverse=not is_rising)
    if last is not None:
        ranked = [row for row in ranked if (number_of(row) > last) == is_rising and number_of(row) != last]
    shown = ranked[:most]
    cursor = _written(number_of(shown[-1])) if len(ranked) > most else None
    return calls.ok({key: [view(row) for row in shown], "next_cursor": cursor})


def _written(number: int) -> str:
    return base64.urlsafe_b64encode(f"after:{number}".encode()).decode().rstrip("=")


def _read(cursor: str | None) -> int | None:
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        return int(text.removeprefix("after:"))
    except (ValueError, binascii.Error) as error:
        raise Refused(422, "Invalid cursor", ("query", "next_cursor")) from error
