"""A ledger that a rehearsed world cannot write: its disk is full until the ballast is freed, or for as long as told."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from agent.ledger.file import sidecar
from tests.support import engines
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


async def let_write(world: Rehearsed, *, may: bool) -> None:
    """Let the ledger be written, or not."""
    if engines.server(world.config.ledger) is not None:
        engines.let_write(world.config.ledger, may=may)
        return
    wire = world.app.ledger._tables

    def switch() -> None:
        assert wire._connection is not None
        driver = wire._connection.connection.driver_connection
        assert driver is not None
        driver.execute(f"PRAGMA query_only = {'OFF' if may else 'ON'}")

    await wire._finish(switch)
