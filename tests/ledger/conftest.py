"""A clock that tests move, and a ledger on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.ledger.store import Ledger
from tests.ledger import values
from tests.support import engines
from tests.support.engines import database, engine

__all__ = ["database", "engine"]


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock(values.NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
async def ledger(path: Path, clock: SteppedClock, engine: str) -> AsyncIterator[Ledger]:
    del engine
    opened = await Ledger.open(engines.place(path), clock=clock)
    yield opened
    await opened.close()
