"""The move of a ledger to a real server and back: nothing is lost, and never can both be opened."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.slot import Slot
from agent.domain.work.decision import Reason
from agent.ledger import ledger_move, moved_marks, storage
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.reader import open_reader
from agent.ledger.server_address import ServerAddress
from agent.ledger.storage_port import Storage
from agent.ledger.store import Ledger
from agent.ledger.tables.decisions import RecordedDecision
from agent.ledger.tables.spend_rows import SpendEntry
from tests.ledger.values import NOW, intent, lease, sample
from tests.support import engines, postgres

pytest.importorskip("psycopg")
pytestmark = pytest.mark.skipif(not postgres.is_here(), reason="PostgreSQL is not installed (make tools)")


@pytest.fixture
def server(database: str, path: Path) -> Storage:
    return storage.of(path, ServerAddress(database, engines.schema(path)))


async def write(place: Path | Storage, clock: SteppedClock, numbers: range) -> Any:
    """Open a ledger, record something for each number, and return what it remembers and its events."""
    ledger = await Ledger.open(place, clock=clock)
    for number in numbers:
        async with ledger.transaction() as tx:
            tx.record_intent(intent(number))
            tx.open_lease(lease(number, slot=Slot("ünïcode ✓", number), dlperf=0.1 + number))
            tx.append_event(Event(NOW, EventKind.LEASE_OPENED, lease_id=f"l{number}", reason="a 'quote' and \\ more"))
            tx.add_spend(
                SpendEntry(f"l{number}", "train", "vast", Tenure.INTERRUPTIBLE, NOW.date(), gpu=Usd(7**number))
            )
            tx.record_decision(RecordedDecision(NOW, Slot("train", number), "hold", Reason("code", "waits")))
            tx.observe_prices([sample(ask=None if number % 2 else 300_000, host_id=f"h{number}")])
    known = ledger.recollection()
    events = await (await ledger.reader()).events()
    await ledger.close()
    return known, events


async def refusal(place: Path | Storage, clock: SteppedClock) -> LedgerError:
    with pytest.raises(LedgerError) as refused:
        await Ledger.open(place, clock=clock)
    return refused.value


async def test_there_and_back_nothing_is_lost(path: Path, clock: SteppedClock, server: Storage) -> None:
    before = await write(path, clock, range(1, 6))
    figures = ledger_move.move(storage.of(path), server, NOW)
    assert (figures["leases"].rows, figures["spend"].rows) == (5, 5)
    assert figures["spend"].money_micros == sum(7**number for number in range(1, 6))
    assert await write(server, clock, range(0)) == before

    moved = await refusal(path, clock)
    assert moved.code is Code.MOVED
    assert server.shown in moved.sentence
    with pytest.raises(LedgerError, match="was moved to"):
        await open_reader(path)

    there = await write(server, clock, range(6, 9))
    assert [event.event_id for event in there[1]] == [8, 7, 6, 5, 4, 3, 2, 1], "numbers go on after those that came"
    ledger_move.move(server, storage.of(path), NOW)
    back = await refusal(server, clock)
    assert f"was moved to {socket.gethostname()}:{path}: " in back.sentence, "another box has no such path"
    assert await write(path, clock, range(0)) == there
    assert (await refusal(server, clock)).code is Code.MOVED
    assert len(list(path.parent.glob("*.moved-*"))) >= 1, "the file from before is kept"
    ledger_move.move(storage.of(path), server, NOW)
    assert await write(server, clock, range(0)) == there, "and there again"


async def test_a_move_that_breaks_off_leaves_one_ledger(
    path: Path, clock: SteppedClock, server: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await write(path, clock, range(1, 3))

    def broken_off(_: object, key: str, __: str) -> None:
        mark(_, key, __)  # type: ignore[arg-type]
        if key == moved_marks.MOVED_TO:
            raise KeyboardInterrupt

    mark = ledger_move._mark
    with monkeypatch.context() as patched:
        patched.setattr(ledger_move, "_mark", broken_off)
        with pytest.raises(KeyboardInterrupt):
            ledger_move.move(storage.of(path), server, NOW)
    half = await refusal(server, clock)
    assert half.code is Code.MOVED
    assert "broken off" in half.sentence
    # Its source can still be opened: moved on, there would be two ledgers of one fleet.
    with pytest.raises(LedgerError, match="broken off"):
        ledger_move.move(server, storage.of(path.with_name("third.sqlite")), NOW)
    assert await write(path, clock, range(0)) == before, "the source is still the ledger"
    ledger_move.move(storage.of(path), server, NOW)
    assert await write(server, clock, range(0)) == before


async def test_a_move_that_breaks_off_in_its_last_step_is_ended_by_running_it_again(
    path: Path, clock: SteppedClock, server: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No verb could open either place, and leases billed without a daemon until somebody typed SQL."""
    before = await write(path, clock, range(1, 3))

    def broken_off(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ledger_move, "_unmark", broken_off)
        with pytest.raises(KeyboardInterrupt):
            ledger_move.move(storage.of(path), server, NOW)
    assert [(await refusal(place, clock)).code for place in (path, server)] == [Code.MOVED] * 2
    figures = ledger_move.move(storage.of(path), server, NOW)
    assert figures["leases"].rows == 2
    assert await write(server, clock, range(0)) == before


async def test_what_arrives_changed_is_not_taken(
    path: Path, clock: SteppedClock, server: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await write(path, clock, range(1, 3))

    def spoil(link: Any) -> None:
        link.exec_driver_sql("UPDATE spend SET gpu = gpu + 1 WHERE lease_id = 'l1'").close()

    monkeypatch.setattr(server, "finish_copy", spoil)
    with pytest.raises(LedgerError, match="table spend") as refused:
        ledger_move.move(storage.of(path), server, NOW)
    assert refused.value.code is Code.BAD_BACKUP
    assert await write(path, clock, range(0)) == before


async def test_a_place_with_a_ledger_and_a_ledger_in_use_are_refused(
    path: Path, clock: SteppedClock, server: Storage
) -> None:
    await write(path, clock, range(1, 2))
    ledger = await Ledger.open(path, clock=clock)
    with pytest.raises(LedgerError) as refused:
        ledger_move.move(storage.of(path), server, NOW)
    assert refused.value.code is Code.LOCKED
    await ledger.close()
    other = path.with_name("other.sqlite")
    await write(other, clock, range(1, 2))
    with pytest.raises(LedgerError, match="has a ledger already"):
        ledger_move.move(storage.of(path), storage.of(other), NOW)
    with pytest.raises(LedgerError, match="there is no ledger at"):
        ledger_move.move(storage.of(path.with_name("none.sqlite")), server, NOW)
    with pytest.raises(LedgerError, match="place already"):
        ledger_move.move(storage.of(path), storage.of(path), NOW)


async def test_a_copy_for_a_preview_is_a_ledger_of_its_own(path: Path, clock: SteppedClock, server: Storage) -> None:
    known, _ = await write(server, clock, range(1, 4))
    copy = path.with_name("copy.sqlite")
    server.copy(copy)
    reader = await open_reader(copy)
    assert (await reader.recollection(NOW)).leases == known.leases
    await reader.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
async def test_a_move_by_root_gives_the_files_to_the_owner_of_their_folder(
    path: Path, clock: SteppedClock, server: Storage
) -> None:
    """The daemon of the package could not open the file that root had moved its ledger to."""
    await write(server, clock, range(1, 3))
    state = path.parent / "state"
    state.mkdir()
    os.chown(state, 1234, 1234)
    ledger_move.move(server, storage.of(state / "ledger.sqlite"), NOW)
    found = {file.name: (file.stat().st_uid, file.stat().st_gid) for file in state.iterdir()}
    assert {"ledger.sqlite", "ledger.sqlite.lock"} <= found.keys()
    assert set(found.values()) == {(1234, 1234)}, found
