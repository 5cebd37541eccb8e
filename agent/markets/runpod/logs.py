"""The stream of a pod's log -> lines. Server-sent events never end, so the received ones are the answer."""

from collections.abc import Iterator, Sequence

import msgspec

from agent.markets import text

MOST_LINE = 2000


class _Event(msgspec.Struct):
    line: str
    source: str = "container"


def lines(raw: bytes, most: int) -> Sequence[str]:
    """Return the last lines that the container printed; an event that is cut off at the end is skipped."""
    return tuple(_said(raw))[-most:] if most > 0 else ()


def _said(raw: bytes) -> Iterator[str]:
    for row in raw.split(b"\n"):
        if not row.startswith(b"data:"):
            continue
        try:
            event = msgspec.json.decode(row.removeprefix(b"data:").strip(), type=_Event)
        except (msgspec.DecodeError, RecursionError):
            continue
        if event.source == "container":
            yield text.clean(event.line, MOST_LINE)
