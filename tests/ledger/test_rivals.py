"""Outbids lie in the ledger with the record of their host, survive a restart, and end with it or with their steps."""

from datetime import timedelta
from pathlib import Path

import pytest

from agent.act.orders import operator_orders, order_grounds
from agent.clock import SteppedClock
from agent.decide.pricing import host_record, rival_bids
from agent.domain.market.host import HALF_LIFE
from agent.domain.market.outbids import Outbids
from agent.domain.work.order import Order
from agent.ledger.store import Ledger
from agent.ledger.tables.host_rows import Exposure
from tests.ledger.values import NOW
from tests.support import engines

TIMID = Outbids.one(0.0, 0.01)


async def opened(path: Path, now: timedelta = timedelta(0)) -> Ledger:
    return await Ledger.open(engines.place(path), clock=SteppedClock(NOW + now))


async def filled(path: Path) -> Ledger:
    ledger = await opened(path)
    async with ledger.transaction() as tx:
        for host in ("h1", "h1", "h2"):
            tx.add_host_exposure(Exposure("vast", host, interruptions=1, market_losses=1, outbids=TIMID, at=NOW))
        tx.add_host_exposure(Exposure("runpod", "h1", interruptions=1, market_losses=1, displaced=1, at=NOW))
    return ledger


def law(ledger: Ledger, at: timedelta = timedelta(0)) -> rival_bids.Rivals:
    """Return the law over all hosts of a ledger."""
    hosts = [record for records in ledger.recollection().hosts.values() for record in records.values()]
    return rival_bids.learned(host_record.total(hosts, NOW + at))


async def test_the_law_is_the_same_after_a_restart_and_fades_by_the_clock_alone(path: Path) -> None:
    ledger = await filled(path)
    before = law(ledger)
    assert ledger.recollection().hosts_on("vast")["h1"].outbids == TIMID.plus(TIMID)
    assert before.above[1] == pytest.approx(16 * rival_bids.ASSUMED.above[1] / 19)
    assert before.displaced == pytest.approx((4 + 1) / (16 + 1 + 3))
    await ledger.close()
    ledger = await opened(path, HALF_LIFE)
    assert law(ledger) == before
    later = law(ledger, HALF_LIFE)
    assert later.above[1] == pytest.approx(16 * rival_bids.ASSUMED.above[1] / 17.5)
    assert law(ledger, 400 * HALF_LIFE).above == pytest.approx(rival_bids.ASSUMED.above)
    await ledger.close()


async def test_a_reset_leaves_the_law_assumed(path: Path) -> None:
    ledger = await filled(path)
    order = Order("reset", "all")
    meaning = operator_orders.read(
        order, "user me", order_grounds.Grounds((), ("vast", "runpod"), ledger.recollection(), NOW)
    )
    async with ledger.transaction() as tx:
        meaning.write(tx, order, "user me", NOW)
    assert law(ledger) == rival_bids.ASSUMED
    await ledger.close()
    ledger = await opened(path)
    assert law(ledger) == rival_bids.ASSUMED
    await ledger.close()


async def test_counts_by_other_steps_are_dropped_and_all_else_of_the_host_stays(path: Path) -> None:
    await (await filled(path)).close()
    engines.execute(path, """UPDATE hosts SET outbids = '{"ours": [3.0], "rivals": [3.0], "steps": [0.0]}'""")
    ledger = await opened(path)
    kept = ledger.recollection().hosts_on("vast")["h1"]
    assert (kept.outbids, kept.market_losses) == (Outbids(), 2.0)
    await ledger.close()
