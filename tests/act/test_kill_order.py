"""A kill and its lifting cross each other and a cycle that settles open writes.

None is lost, none is reported twice.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.act.orders import kill_order
from agent.clock import SteppedClock
from agent.decide.operators import operator_holds
from agent.domain.record.hold import DISKS
from agent.ledger.store import Ledger
from tests.support.scene import START


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    opened = await Ledger.open(tmp_path / "ledger.sqlite", clock=SteppedClock(START))
    yield opened
    await opened.close()


async def told(ledger: Ledger) -> list[str]:
    events = await (await ledger.reader()).events()
    return [event.kind for event in sorted(events, key=lambda event: event.event_id or 0)]


def is_on(ledger: Ledger) -> bool:
    return operator_holds.kill_of_everything(ledger.recollection().holds, START) is not None


async def test_a_cycle_that_waits_to_settle_a_kill_writes_it_once(ledger: Ledger) -> None:
    await asyncio.gather(kill_order.begin(ledger, START, "me"), *(kill_order.settle(ledger, START) for _ in range(3)))
    assert await told(ledger) == ["operator.halted"]
    assert (is_on(ledger), ledger.owed) == (True, ())


async def test_a_kill_that_is_lifted_while_others_wait_to_settle_it_is_over(ledger: Ledger) -> None:
    begun = asyncio.create_task(kill_order.begin(ledger, START, "me"))
    ended = asyncio.create_task(kill_order.end(ledger, START, "me"))
    await asyncio.gather(begun, ended, kill_order.settle(ledger, START))
    assert await told(ledger) == ["operator.halted", "operator.lifted"]
    assert (is_on(ledger), ledger.owed) == (False, ())


@pytest.mark.parametrize("first", [kill_order.begin, kill_order.end], ids=["another kill", "its lifting"])
async def test_a_kill_given_while_something_else_is_written_down_stands(ledger: Ledger, first: object) -> None:
    await kill_order.begin(ledger, START, "you")
    before = asyncio.create_task(first(ledger, START, "you"))  # type: ignore[operator]
    await asyncio.sleep(0)
    await kill_order.begin(ledger, START, "me", keep_disks=True)
    await before
    assert (is_on(ledger), ledger.owed) == (True, ())
    assert DISKS in {each.target for each in ledger.recollection().holds}
