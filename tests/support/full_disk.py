"""A disk that is full under a rehearsed world: SQLite refuses every write until the ballast is freed."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from agent.ledger.file import sidecar
from tests.support.world import Rehearsed


def fill(world: Rehearsed) -> None:
    """Let the disk be full until the ballast is freed: every commit before that is refused."""
    wire, ballast = world.app.ledger._tables, sidecar.sibling(world.app.ledger.path, ".ballast")
    assert ballast.exists()
    transact, is_full = wire._transact, True

    def on_a_full_disk(work: Callable[[sa.Connection], Any], **words: Any) -> Any:
        nonlocal is_full
        is_full = is_full and ballast.exists()
        assert wire._connection is not None
        driver = wire._connection.connection.driver_connection
        assert driver is not None
        driver.execute(f"PRAGMA query_only = {'ON' if is_full else 'OFF'}")
        return transact(work, **words)

    wire._transact = on_a_full_disk  # type: ignore[method-assign]
