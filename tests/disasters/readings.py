"""The judge's own look into a ledger, on either engine: one connection to each, kept while a daemon lives."""

from pathlib import Path
from typing import Any

from tests.support import engines


class Readings:
    """Reads the committed state. To open a file for every question takes longer than the question."""

    def __init__(self) -> None:
        self._connections: dict[Path, engines.Reading] = {}

    def rows(self, ledger: Path, query: str, *parameters: str) -> list[Any]:
        """Return the rows of a query."""
        connection = self._connections.get(ledger)
        if connection is None:
            connection = self._connections[ledger] = engines.Reading(ledger)
        return connection.rows(query, *parameters)

    def close(self) -> None:
        """Close every file: the last to close a ledger folds its journal in, and that is the daemon."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
