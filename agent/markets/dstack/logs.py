"""The pieces of a job's log -> lines. The server sends base64 texts, the newest first."""

import base64
import binascii
from collections.abc import Iterable, Sequence

from agent.markets import text
from agent.markets.dstack import rows

MOST_LINE = 2000
MOST_PIECES = 1000
"""The most pieces in one answer of the server."""


def lines(pieces: Iterable[rows.LogLine], most: int) -> Sequence[str]:
    """Return the last lines that the container printed; a piece that cannot be read is skipped."""
    whole = b"".join(reversed([_decoded(piece.message) for piece in pieces]))
    found = [text.clean(line, MOST_LINE) for line in whole.decode(errors="replace").splitlines()]
    return tuple(found[-most:]) if most > 0 else ()


def _decoded(message: str) -> bytes:
    try:
        return base64.b64decode(message, validate=True)
    except (binascii.Error, ValueError):
        return b""
