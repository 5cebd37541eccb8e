"""Where notifications go on: after a restore, on a new ledger, after an upgrade, and on the machine that takes over.

The ledgers, the server, the backup and the receiver are real.
"""

import datetime as dt
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.config.notify_settings import Hook, Notify, Rule, Severity, Webhook
from agent.domain.market.interruption import Cause
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.ledger import storage
from agent.ledger.file import backup, restore
from agent.ledger.server_address import ServerAddress
from agent.ledger.storage_port import Storage
from agent.ledger.store import Ledger
from agent.notify import channels
from agent.notify.dispatcher import Dispatcher
from tests.notify.receiver import Receiver
from tests.support import engines
from tests.support.engines import database

__all__ = ["database"]
NOW = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock(NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


async def happen(ledger: Ledger, clock: SteppedClock, *slots: int) -> None:
    for slot in slots:
        event = Event(clock.now(), EventKind.LEASE_INTERRUPTED, workload="train", slot=slot, cause=Cause.OUTBID)
        async with ledger.transaction() as tx:
            tx.append_event(event)


def sender(ledger: Ledger, clock: SteppedClock, notify: Notify) -> Dispatcher:
    return Dispatcher(ledger, clock, notify, channels.channels(notify, lambda _: "", clock))


async def sent(ledger: Ledger, clock: SteppedClock, receiver: Receiver, *slots: int) -> list[int]:
    """Start notifications, let slots lose their leases, and return the slots of which messages arrived."""
    receiver.got = []
    mine = sender(ledger, clock, Notify(webhook=Webhook(url=receiver.url)))
    await mine.round()
    await happen(ledger, clock, *slots)
    await mine.round()
    return [int(title.split("/")[1].split()[0]) for title in receiver.titles]


def kept_by_earlier_gpubid(path: Path, number: int) -> None:
    """Leave a ledger and its file as an earlier gpubid did, which kept the place in a file."""
    engines.execute(path, "DELETE FROM meta WHERE key = 'notified'")
    path.with_name(path.name + ".told").write_text(f"{number}\n")


async def test_a_restored_ledger_sends_its_next_event_and_none_again(
    path: Path, tmp_path: Path, clock: SteppedClock, receiver: Receiver
) -> None:
    ledger = await Ledger.open(path, clock=clock)
    assert await sent(ledger, clock, receiver, 0, 1) == [0, 1]
    copy = tmp_path / "copy.sqlite"
    backup.copy(path, copy)
    assert await sent(ledger, clock, receiver, 2, 3, 4) == [2, 3, 4]
    await ledger.close()

    restore.restore(copy, path, NOW, replaces=True)
    ledger = await Ledger.open(path, clock=clock)
    assert await sent(ledger, clock, receiver, 5) == [5]
    await ledger.close()


async def test_a_new_ledger_of_an_old_fleet_sends_every_event(
    path: Path, clock: SteppedClock, receiver: Receiver
) -> None:
    ledger = await Ledger.open(path, clock=clock)
    await sent(ledger, clock, receiver, 0, 1)
    await ledger.close()
    kept_by_earlier_gpubid(path, 500)
    engines.lose(path)

    ledger = await Ledger.open(path, clock=clock)
    await happen(ledger, clock, 7)
    assert await sent(ledger, clock, receiver, 8) == [7, 8]
    await ledger.close()


@pytest.mark.parametrize(
    ("number", "expected"), [(2, [2, 3]), (500, [3])], ids=["its own events", "events that a restore dropped"]
)
async def test_the_place_of_an_earlier_gpubid_is_taken_once_if_it_can_be_of_this_ledger(
    path: Path, clock: SteppedClock, receiver: Receiver, number: int, expected: list[int]
) -> None:
    ledger = await Ledger.open(path, clock=clock)
    await happen(ledger, clock, 0, 1, 2)
    await ledger.close()
    kept_by_earlier_gpubid(path, number)

    ledger = await Ledger.open(path, clock=clock)
    assert await sent(ledger, clock, receiver, 3) == expected
    assert not path.with_name(path.name + ".told").exists()
    assert await sent(ledger, clock, receiver) == []
    await ledger.close()


async def test_whoever_takes_over_sends_what_its_leader_had_not_sent_and_nothing_twice(
    tmp_path: Path, database: str, clock: SteppedClock, receiver: Receiver
) -> None:
    address = ServerAddress(database, engines.schema(tmp_path))

    def box(name: str) -> Storage:
        (tmp_path / name).mkdir(exist_ok=True)
        return storage.of(tmp_path / name / "ledger.sqlite", address)

    first = await Ledger.open(box("a"), clock=clock)
    assert await sent(first, clock, receiver, 0) == [0]
    receiver.status = 503
    await sent(first, clock, receiver, 1, 2)
    await first.close()

    receiver.status = 200
    second = await Ledger.open(box("b"), clock=clock)
    assert await sent(second, clock, receiver, 3) == [1, 2, 3]
    await second.close()

    first = await Ledger.open(box("a"), clock=clock)
    assert await sent(first, clock, receiver, 4) == [4], "it led before, but its own place is long over"
    await first.close()


async def test_a_hook_gets_each_transition_once_across_a_takeover(
    tmp_path: Path, database: str, clock: SteppedClock
) -> None:
    address, got = ServerAddress(database, engines.schema(tmp_path)), tmp_path / "got"
    notify = Notify(
        rules=(Rule(severity=Severity.INFO, channels=("hook",)),),
        hook=Hook(("/bin/sh", "-c", f"cat >> {got}; echo >> {got}")),
    )
    for name, slots in (("a", (0, 1)), ("b", (2,)), ("a", (3,))):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        ledger = await Ledger.open(storage.of(folder / "ledger.sqlite", address), clock=clock)
        mine = sender(ledger, clock, notify)
        await mine.round()
        await happen(ledger, clock, *slots)
        await mine.round()
        # The leader dies with an event that it recorded and had not handed over.
        await happen(ledger, clock, slots[-1] + 10)
        await ledger.close()
    slots_seen = [_slot(line) for line in got.read_text().splitlines()]
    assert slots_seen == [0, 1, 11, 2, 12, 3]


def _slot(line: str) -> Any:
    return json.loads(line)["events"][0]["slot"]
