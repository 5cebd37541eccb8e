"""A ledger that another tool took back in time is marked: its spend since then is unknown, on either engine."""

import datetime as dt
from pathlib import Path

import pytest

from agent.clock import SteppedClock, SystemClock
from agent.domain.market.tenure import Tenure
from agent.ledger import offline, storage
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.server_address import ServerAddress
from agent.ledger.storage_port import Storage
from agent.ledger.store import Ledger
from agent.ledger.tables.spend_rows import MONTH_SEED, SpendEntry, SpendKey
from tests.ledger.values import lease
from tests.support import builders, engines, postgres
from tests.support.configs import GOOD
from tests.support.programs import gpubid

WHOLE = {MONTH_SEED: builders.usd(5), "l1": builders.usd(2)}
RECOUNTED = WHOLE | {MONTH_SEED: builders.usd(2)}
"""What this month's bill counted is counted again."""


async def spent(place: Storage, clock: SteppedClock) -> None:
    """Write a ledger that has spend of an earlier one, counted from the bills of two months.

    The later day is tomorrow: it belongs to the marked month or follows it also where a month ends during the test.
    """
    today = SystemClock().now().date()
    months = today.replace(day=1) - dt.timedelta(days=1), today + dt.timedelta(days=1)
    ledger = await Ledger.open(place, clock=clock)
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
        tx.count_again("vast")
        for day, dollars in zip(months, (2, 3), strict=True):
            tx.add_spend(SpendEntry(MONTH_SEED, "", "vast", Tenure.INTERRUPTIBLE, day, gpu=builders.usd(dollars)))
            tx.add_spend(SpendEntry("l1", "train", "vast", Tenure.INTERRUPTIBLE, day, gpu=builders.usd(1)))
    assert not ledger.is_uncounted("vast")
    await ledger.close()


async def assert_marked(place: Storage, clock: SteppedClock) -> None:
    ledger = await Ledger.open(place, clock=clock)
    assert (ledger.was_lost, ledger.has_lost_runs, ledger.is_uncounted("vast")) == (True, True, True)
    spend = {line.key: line.amount for line in await (await ledger.reader()).spend_by(SpendKey.LEASE)}
    assert spend == RECOUNTED
    await ledger.close()


async def test_spend_since_then_is_unknown_on_a_file(path: Path, clock: SteppedClock) -> None:
    (path.parent / "agent.toml").write_text(GOOD + "[ledger]\npath = 'ledger.sqlite'\n")
    await spent(storage.of(path), clock)
    said = await gpubid(path.parent, "ledger", "mark-restored")
    assert said.code == 0, said
    assert "is marked as restored" in said.out
    assert "no bill" not in said.err
    await assert_marked(storage.of(path), clock)
    noted = await gpubid(path.parent, "ledger", "events", "--kind", "operator.ordered")
    assert "mark-restored" in noted.out


async def test_a_market_without_a_bill_is_named(path: Path, clock: SteppedClock) -> None:
    text = GOOD.replace("[limits]", '[markets.dstack]\nsimulated = "calm"\n\n[limits]')
    (path.parent / "agent.toml").write_text(text + "[ledger]\npath = 'ledger.sqlite'\n")
    await spent(storage.of(path), clock)
    said = await gpubid(path.parent, "ledger", "mark-restored")
    assert said.code == 0, said
    assert "dstack shows no bill" in said.err
    assert "the budget of dstack" in said.err


@pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")
async def test_spend_since_then_is_unknown_on_a_server(database: str, path: Path, clock: SteppedClock) -> None:
    place = storage.of(path, ServerAddress(database, engines.schema(path)))
    await spent(place, clock)
    offline.mark_restored(place, SystemClock().now())
    await assert_marked(place, clock)


async def test_nothing_is_marked_while_a_daemon_runs(path: Path, clock: SteppedClock) -> None:
    await spent(storage.of(path), clock)
    ledger = await Ledger.open(path, clock=clock)
    with pytest.raises(LedgerError) as refused:
        offline.mark_restored(storage.of(path), SystemClock().now())
    assert refused.value.code is Code.LOCKED
    assert not ledger.was_lost
    await ledger.close()
