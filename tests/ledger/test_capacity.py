"""The learned figures of pools are in the ledger, survive a restart, and are forgotten by order alone."""

from pathlib import Path

import pytest

from agent.act.orders import operator_orders, order_grounds
from agent.act.orders.order_error import OrderError
from agent.clock import SteppedClock
from agent.domain.market.capacity import Capacity, Counts
from agent.domain.money import UsdPerHour
from agent.domain.work.order import Order
from agent.ledger.store import Ledger
from agent.ledger.tables.host_rows import Exposure
from tests.ledger.values import NOW
from tests.support import engines

POOL = "RTX 4090 x1 up to $0.45/h"


def known(market: str, pool: str = POOL) -> Capacity:
    counts = Counts((1.0, 0.0), (0.5, 2.25))
    price = UsdPerHour(210_000)
    return Capacity(True, NOW, NOW, (-0.25, -1.5), price, market, pool, True, "abc", counts, Counts(), 12)


async def filled(path: Path) -> Ledger:
    ledger = await Ledger.open(engines.place(path), clock=SteppedClock(NOW))
    async with ledger.transaction() as tx:
        for each in (known("vast"), known("runpod"), known("vast", "other")):
            tx.keep_capacity(each)
        tx.add_host_exposure(Exposure("vast", "h1", running_seconds=60.0, at=NOW))
    return ledger


async def test_it_survives_a_restart(tmp_path: Path) -> None:
    ledger = await filled(tmp_path / "ledger.sqlite")
    before = ledger.recollection()
    await ledger.close()
    ledger = await Ledger.open(engines.place(tmp_path / "ledger.sqlite"), clock=SteppedClock(NOW))
    assert ledger.recollection().capacity == before.capacity
    assert [(each.market, each.pool) for each in before.capacity] == [
        ("runpod", POOL),
        ("vast", POOL),
        ("vast", "other"),
    ]
    assert known("vast") in await (await ledger.reader()).capacity()
    await ledger.close()


@pytest.mark.parametrize(
    ("target", "pools", "hosts"),
    [
        ("all", [], 0),
        ("market:vast", [("runpod", POOL)], 0),
        (f"pool:{POOL}", [("vast", "other")], 1),
    ],
)
async def test_a_reset_forgets_what_it_names_and_an_event_tells(
    tmp_path: Path, target: str, pools: list[tuple[str, str]], hosts: int
) -> None:
    ledger = await filled(tmp_path / "ledger.sqlite")
    order = Order("reset", target)
    grounds = order_grounds.Grounds((), ("vast", "runpod"), ledger.recollection(), NOW)
    meaning = operator_orders.read(order, "user me", grounds)
    async with ledger.transaction() as tx:
        meaning.write(tx, order, "user me", NOW)
    for _ in range(2):
        left = ledger.recollection()
        assert [(each.market, each.pool) for each in left.capacity] == pools
        assert len(left.hosts_on("vast")) == hosts
        (event,) = await (await ledger.reader()).events()
        assert (event.kind, event.reason_code) == ("operator.ordered", "reset")
        assert event.reason.endswith("(user me)")
        await ledger.close()
        ledger = await Ledger.open(engines.place(tmp_path / "ledger.sqlite"), clock=SteppedClock(NOW))
    await ledger.close()


@pytest.mark.parametrize("target", ["market:none", "pool:none", "pool:", "host:h1", "train"])
async def test_what_cannot_be_forgotten_is_said(tmp_path: Path, target: str) -> None:
    ledger = await filled(tmp_path / "ledger.sqlite")
    grounds = order_grounds.Grounds((), ("vast",), ledger.recollection(), NOW)
    with pytest.raises(OrderError):
        operator_orders.read(Order("reset", target), "user me", grounds)
    await ledger.close()
