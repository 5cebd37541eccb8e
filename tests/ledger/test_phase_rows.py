"""The ledger keeps paid = loading + restoring + useful + lost: SQLite itself refuses anything else."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

import datetime as dt
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.clock import SteppedClock
from agent.domain.market.tenure import Tenure
from agent.domain.record.paid_time import Phases
from agent.ledger.file import migrate
from agent.ledger.store import Ledger
from agent.ledger.tables import schema
from tests.ledger.values import NOW

DAY = NOW.date()
micros = st.integers(0, 90_000_000_000)
parts = st.builds(
    Phases, st.just("l1"), st.sampled_from([DAY, DAY + dt.timedelta(days=1)]), micros, micros, micros, micros, micros
)


def rows(path: Path) -> list[tuple[int, ...]]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("SELECT paid, loading, restoring, useful, lost FROM phases ORDER BY day").fetchall()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(told=st.lists(parts, min_size=1, max_size=8))
async def test_whatever_is_told_the_parts_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory, told: list[Phases]
) -> None:
    path = tmp_path_factory.mktemp("phases") / "ledger.sqlite"
    ledger = await Ledger.open(path, clock=SteppedClock(NOW))
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


async def test_a_ledger_of_the_release_before_is_split_as_well_as_it_can_be(path: Path, clock: SteppedClock) -> None:
    path.touch()
    migrate.upgrade_to(path, "0003")
    opened = NOW - dt.timedelta(hours=3)
    with closing(sqlite3.connect(path)) as raw, raw:
        day = DAY.isoformat()
        for lease_id, since in (("l1", "NULL"), ("l2", str(int(NOW.timestamp() * 1e6)))):
            _insert_lease(raw, lease_id, since, opened)
            raw.execute(
                "INSERT INTO spend VALUES (?, ?, 'interruptible', 'train', 'vast', 5, 5, 5, 3600.5, 3000.25)",
                (lease_id, day),
            )
    ledger = await Ledger.open(path, clock=clock)
    await ledger.close()
    assert migrate.stored_revision(path) == schema.REVISION
    assert rows(path) == [
        (3_600_500_000, 0, 0, 3_000_250_000, 600_250_000),
        (3_600_500_000, 0, 0, 3_600_500_000, 0),
    ]


def _insert_lease(raw: sqlite3.Connection, lease_id: str, run_since: str, opened: dt.datetime) -> None:
    known: dict[str, object] = {
        "lease_id": lease_id, "instance_id": lease_id, "market": "vast", "workload": "train", "tenure": "interruptible",
        "state": "running", "bills": "gpu_and_disk", "opened_at": int(opened.timestamp() * 1e6), "recent_bids": "[]",
    }  # fmt: skip
    for _, name, kind, is_required, *_ in raw.execute("PRAGMA table_info(leases)").fetchall():
        if is_required and name not in known:
            known[name] = "" if kind == "TEXT" else 0
    names = ", ".join(known)
    marks = ", ".join("?" for _ in known)
    raw.execute(f"INSERT INTO leases ({names}, run_since) VALUES ({marks}, {run_since})", tuple(known.values()))  # noqa: S608
