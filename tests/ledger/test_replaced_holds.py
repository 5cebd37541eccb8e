"""`gpubid ledger restore` keeps the holds of the replaced ledger, or says that they are lost."""

# ruff: noqa: ASYNC240 - a test may wait for its own files

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import EVERYTHING, OperatorHold, Target, Word, of_workload
from agent.ledger.file import backup, connection, migrate, restore
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from tests.support import programs
from tests.support.builders import NOW
from tests.support.programs import LIVE, gpubid, until

pytestmark = pytest.mark.only_sqlite
LOST = "orders since the backup are lost: kill, pause, drain, lock and done"
DRAINED, KILLED = (Word.DRAIN, of_workload("train")), (Word.KILL, EVERYTHING)


async def test_a_kill_since_the_backup_stays_in_force(tmp_path: Path) -> None:
    async with programs.running(tmp_path) as (market, daemon):
        await until(market.billing, "a rent")
        assert (await gpubid(tmp_path, "ledger", "backup", "copy.sqlite")).code == 0
        assert (await gpubid(tmp_path, "kill")).code == 0
        assert await daemon.stop() == 0
        said = await gpubid(tmp_path, "ledger", "restore", "copy.sqlite", "--replace")
        assert said.code == 0, said
        assert "holds of the previous ledger that stay in force: 1 kill; `gpubid fleet` shows them" in said.out
        assert "are lost" not in said.err
        await market.advance(20)
        async with programs.daemon(tmp_path) as restarted:
            await restarted.until_told("READY=1")
            assert "kill of everything, after a kill by uid" in (await gpubid(tmp_path, "fleet")).out
            assert await market.billing() == []
            assert await restarted.stop() == 0


async def test_without_a_readable_ledger_the_lost_orders_are_named_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(LIVE.format(url="http://127.0.0.1:9"))
    await (await Ledger.open(tmp_path / "ledger.sqlite", clock=SteppedClock(NOW))).close()
    backup.copy(tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite")
    (tmp_path / "ledger.sqlite").write_bytes(b"\0garbage" * 1000)
    said = await gpubid(tmp_path, "ledger", "restore", "copy.sqlite", "--replace")
    assert said.code == 0, said
    assert LOST in said.err
    assert "give them again before the daemon starts; `gpubid kill`" in said.err
    assert "stay in force" not in said.out


async def held(path: Path, clock: SteppedClock, *holds: tuple[Word, Target]) -> None:
    """Put these holds in place of a ledger's present ones, an hour after its last event."""
    clock.advance(3600)
    ledger = await Ledger.open(path, clock=clock)
    async with ledger.transaction() as tx:
        for each in ledger.recollection(clock.now()).holds:
            tx.lift_expiring(each.place)
        for word, target in holds:
            tx.add_expiring(OperatorHold(word, target, clock.now(), "a person"))
        tx.append_event(Event(at=clock.now(), kind=EventKind.OPERATOR_HALTED, reason_code="test", reason="held"))
    await ledger.close()


async def holds(path: Path, clock: SteppedClock) -> set[tuple[Word, Target]]:
    ledger = await Ledger.open(path, clock=clock)
    known = {(each.word, each.target) for each in ledger.recollection(clock.now()).holds}
    await ledger.close()
    return known


async def test_a_hold_that_was_lifted_since_the_backup_stays_lifted(tmp_path: Path) -> None:
    path, copy, clock = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite", SteppedClock(NOW)
    await held(path, clock, KILLED)
    backup.copy(path, copy)
    await held(path, clock, DRAINED)
    restored = restore.restore(copy, path, clock.now(), replaces=True)
    assert restored.holds is not None
    assert restored.holds.counts == {"drain": 1}
    assert restored.holds.is_whole
    assert await holds(path, clock) == {DRAINED}


async def test_an_older_ledger_of_the_fleet_gives_no_holds(tmp_path: Path) -> None:
    path, copy, clock = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite", SteppedClock(NOW)
    await held(path, clock, KILLED)
    backup.copy(path, tmp_path / "other.sqlite")
    await held(tmp_path / "other.sqlite", clock, DRAINED)
    backup.copy(tmp_path / "other.sqlite", copy)
    assert restore.restore(copy, path, clock.now(), replaces=True).holds is None
    assert await holds(path, clock) == {DRAINED}


async def test_another_fleets_holds_are_not_taken(tmp_path: Path) -> None:
    path, copy, clock = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite", SteppedClock(NOW)
    other = tmp_path / "other" / "ledger.sqlite"
    other.parent.mkdir()
    await held(other, clock, DRAINED)
    backup.copy(other, copy)
    await held(path, clock, KILLED)
    assert restore.restore(copy, path, clock.now(), replaces=True).holds is None
    assert await holds(path, clock) == {DRAINED}


@pytest.mark.parametrize("is_damaged", [True, False], ids=["damaged", "begun anew after a loss"])
async def test_what_may_lack_holds_adds_them_to_those_of_the_backup(tmp_path: Path, *, is_damaged: bool) -> None:
    path, copy, clock = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite", SteppedClock(NOW)
    await held(path, clock, DRAINED)
    backup.copy(path, copy)
    await held(path, clock, KILLED)
    with closing(sqlite3.connect(path)) as raw:
        if is_damaged:
            root = raw.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'leases'").fetchone()[0]
            size = raw.execute("PRAGMA page_size").fetchone()[0]
        else:
            raw.execute("INSERT INTO meta (key, value) VALUES ('lost_runs', '1')")
            raw.commit()
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if is_damaged:
        with path.open("r+b") as file:
            file.seek((root - 1) * size)
            file.write(b"\xff" * size)
    restored = restore.restore(copy, path, clock.now() + timedelta(hours=1), replaces=True)
    assert restored.holds is not None
    assert not restored.holds.is_whole
    assert await holds(path, clock) == {DRAINED, KILLED}


async def killed_since_a_backup(path: Path, copy: Path, clock: SteppedClock) -> None:
    await held(path, clock)
    backup.copy(path, copy)
    await held(path, clock, KILLED)


async def test_a_restore_that_fails_leaves_the_ledger_with_its_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy, clock = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite", SteppedClock(NOW)
    await killed_since_a_backup(path, copy, clock)
    # SQLite ends here where the disk has room for the copy and none for the first write to it.
    connect = connection.connect

    def full(file: Path, mode: str) -> sqlite3.Connection:
        if mode == "ro":
            return connect(file, mode)
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr(connection, "connect", full)
    with pytest.raises(LedgerError) as refused:
        restore.restore(copy, path, clock.now(), replaces=True)
    monkeypatch.undo()
    assert refused.value.code is Code.UNWRITABLE
    assert [file.name for file in tmp_path.iterdir() if "restor" in file.name] == []
    assert await holds(path, clock) == {KILLED}


async def test_a_restore_broken_off_between_its_renames_starts_no_daemon_and_forgets_no_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy, clock = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite", SteppedClock(NOW)
    await killed_since_a_backup(path, copy, clock)

    def broken_off(*_: object) -> None:
        raise KeyboardInterrupt

    # The second one breaks off before it is whole.
    for step in ("_put_in_place", "_mark"):
        monkeypatch.setattr(restore, step, broken_off)
        with pytest.raises(KeyboardInterrupt):
            restore.restore(copy, path, clock.now(), replaces=True)
        monkeypatch.undo()
        with pytest.raises(LedgerError, match=r"a restore of .* broke off: give `gpubid ledger restore BACKUP"):
            await Ledger.open(path, clock=clock)
    with pytest.raises(LedgerError, match="name the backup itself"):
        restore.restore(migrate.draft_of(path), path, clock.now(), replaces=True)
    restored = restore.restore(copy, path, clock.now(), replaces=True)
    assert restored.holds is not None
    assert restored.holds.counts == {"kill": 1}
    ledger = await Ledger.open(path, clock=clock)
    assert ledger.was_lost
    await ledger.close()
    assert await holds(path, clock) == {KILLED}
