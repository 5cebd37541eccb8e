"""The ledger keeps paid = loading + restoring + useful + lost: SQLite itself refuses anything else."""

import datetime as dt
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.clock import SteppedClock
from agent.domain.market.tenure import Tenure
from agent.domain.record.paid_time import Phases
from agent.ledger.store import Ledger
from tests.ledger.values import NOW
from tests.support import engines

DAY = NOW.date()
micros = st.integers(0, 90_000_000_000)
parts = st.builds(
    Phases, st.just("l1"), st.sampled_from([DAY, DAY + dt.timedelta(days=1)]), micros, micros, micros, micros, micros
)


def rows(path: Path) -> list[tuple[int, ...]]:
    return engines.rows(path, "SELECT paid, loading, restoring, useful, lost FROM phases ORDER BY day")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(told=st.lists(parts, min_size=1, max_size=8))
async def test_whatever_is_told_the_parts_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, told: list[Phases]
) -> None:
    path = tmp_path_factory.mktemp("phases") / "ledger.sqlite"
    ledger = await Ledger.open(engines.place(path), clock=SteppedClock(NOW))
    for part in told:
        async with ledger.transaction() as tx:
            tx.add_phases(Tenure.INTERRUPTIBLE, part)
    await ledger.close()
    found = rows(path)
    assert sum(row[0] for row in found) == sum(part.paid for part in told)
    assert all(row[0] == sum(row[1:]) and min(row) >= 0 for row in found)


async def test_what_is_spoiled_moves_from_useful_to_lost_on_its_day(path: Path, ledger: Ledger) -> None:
    async with ledger.transaction() as tx:
        tx.add_phases(Tenure.INTERRUPTIBLE, Phases("l1", DAY, restoring=5, useful=10))
        tx.add_phases(Tenure.INTERRUPTIBLE, Phases("l1", DAY, useful=7, spoiled=9))
        tx.add_phases(Tenure.INTERRUPTIBLE, Phases("l1", DAY, redeemed=3))
    assert rows(path) == [(22, 0, 2, 11, 9)]
