"""A lost box: its backup on another one is the same fleet, adopts its leases, and knows what it lacks."""

# ruff: noqa: ASYNC240 - a test may wait for its own files and programs

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.ledger import ledger_move, storage
from agent.ledger.file import backup, ledger_check, ledger_lock, restore, sidecar
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from tests.support import programs
from tests.support.builders import NOW
from tests.support.programs import LIVE, Market, gpubid, until

pytestmark = pytest.mark.only_sqlite


async def _count(market: Market, count: int) -> bool:
    return len(await market.billing()) == count


@pytest.mark.long(23)
async def test_a_lost_box_comes_back_with_its_leases_and_its_spend(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    async with programs.market(tmp_path) as market:
        (old / "agent.toml").write_text(LIVE.format(url=market.url))
        async with programs.daemon(old) as daemon:
            await daemon.until_told("READY=1")
            await until(market.billing, "a rent")
            await daemon.until_logged("lease.running")
            assert (await gpubid(old, "ledger", "backup", tmp_path / "copy.sqlite")).code == 0
            # Rented after the backup: its cost is in the market's bill alone.
            (old / "agent.toml").write_text(LIVE.format(url=market.url).replace("slots = 1", "slots = 2"))
            await daemon.reload()
            await until(lambda: _count(market, 2), "a second rent")
            both = await market.billing()
            daemon.process.kill()
            await daemon.ended()
        shutil.rmtree(old)

        (new / "agent.toml").write_text(LIVE.format(url=market.url).replace("slots = 1", "slots = 2"))
        said = await gpubid(new, "ledger", "restore", tmp_path / "copy.sqlite")
        assert said.code == 0, said
        assert (await gpubid(new, "ledger", "verify")).code == 0
        await market.advance(20)
        async with programs.daemon(new) as daemon:
            await daemon.until_told("READY=1")
            await until(lambda: _taken_up(new, both), "both leases in the ledger")
            assert await market.billing() == both, "nothing was rented twice, nothing was let go"
            with sqlite3.connect(new / "ledger.sqlite") as link:
                seeded = link.execute("SELECT gpu FROM spend WHERE lease_id = 'before-this-ledger'").fetchall()
                assert link.execute("SELECT count(*) FROM meta WHERE key = 'was_lost'").fetchone() == (0,)
            link.close()
            assert seeded, "the bill of the second instance was not counted"
            assert await daemon.stop() == 0


async def _taken_up(place: Path, contracts: list[int]) -> bool:
    shown = (await gpubid(place, "fleet", "--json")).json
    return {lease["instance"] for lease in shown["leases"]} == {str(contract) for contract in contracts}


async def test_nothing_is_restored_over_a_ledger_or_under_a_daemon(tmp_path: Path) -> None:
    config = LIVE.replace("max_instances = 4", "max_instances = 0")
    copy = tmp_path / "copy.sqlite"
    async with programs.running(tmp_path, config=config) as (_, daemon):
        assert (await gpubid(tmp_path, "ledger", "backup", copy)).code == 0
        busy = await gpubid(tmp_path, "ledger", "restore", copy, "--replace")
        assert (busy.code, "in use by process" in busy.err) == (1, True)
        assert await daemon.stop() == 0
    taken = await gpubid(tmp_path, "ledger", "restore", copy)
    assert (taken.code, "--replace" in taken.err) == (2, True)
    assert (await gpubid(tmp_path, "ledger", "restore", copy, "--replace")).code == 0
    beside = ("-wal", "-shm")
    aside = [file for file in tmp_path.glob("ledger.sqlite.before-restore-*") if not file.name.endswith(beside)]
    assert len(aside) == 1
    assert sqlite3.connect(aside[0]).execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("content", [b"", b"\0garbage" * 1000], ids=["empty", "garbage"])
async def test_what_is_no_backup_is_not_restored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "agent.toml").write_text(LIVE.format(url="http://127.0.0.1:9"))
    (tmp_path / "copy.sqlite").write_bytes(content)
    said = await gpubid(tmp_path, "ledger", "restore", tmp_path / "copy.sqlite")
    assert said.code == 2, said
    assert not (tmp_path / "ledger.sqlite").exists()


async def test_a_journal_without_its_ledger_is_put_aside(tmp_path: Path) -> None:
    path, copy = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite"
    ledger = await Ledger.open(path, clock=SteppedClock(NOW))
    backup.copy(path, copy)
    for count in range(60):
        async with ledger.transaction() as tx:
            tx.append_event(Event(NOW, EventKind.LEASE_OPENED, evidence="x" * 300, lease_id=f"l{count}"))
    journal = sidecar.sibling(path, "-wal").read_bytes()
    await ledger.close()
    # The daemon was killed, and a person moved the damaged ledger away without its journal.
    path.unlink()
    sidecar.sibling(path, "-wal").write_bytes(journal)
    assert restore.restore(copy, path, NOW, replaces=False).aside is None
    found = ledger_check.verify(path)
    assert (found.findings, found.counted["events"]) == ((), 0)
    assert [file.read_bytes() for file in tmp_path.glob("ledger.sqlite.before-restore-*-wal")] == [journal]


async def test_nothing_is_restored_over_a_ledger_that_was_moved_away(tmp_path: Path) -> None:
    path, copy, other = (tmp_path / f"{name}.sqlite" for name in ("ledger", "copy", "other"))
    await (await Ledger.open(path, clock=SteppedClock(NOW))).close()
    backup.copy(path, copy)
    ledger_move.move(storage.of(path), storage.of(other), NOW)
    with pytest.raises(LedgerError, match=rf"was moved to \S+:{other}: .* rename {path} and give") as refused:
        restore.restore(copy, path, NOW, replaces=True)
    assert refused.value.code is Code.MOVED
    with pytest.raises(LedgerError, match="was moved to"):
        await Ledger.open(path, clock=SteppedClock(NOW))
    path.rename(tmp_path / "moved.sqlite")
    assert restore.restore(copy, path, NOW, replaces=False).aside is None


def owners(folder: Path) -> dict[str, int]:
    return {file.name: file.lstat().st_uid for file in folder.iterdir()}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
async def test_root_gives_the_files_of_the_ledger_to_the_daemon_and_no_file_behind_a_link(tmp_path: Path) -> None:
    state, secret, linked = tmp_path / "state", tmp_path / "secret", tmp_path / "linked"
    state.mkdir()
    path, copy = state / "ledger.sqlite", tmp_path / "copy.sqlite"
    await (await Ledger.open(path, clock=SteppedClock(NOW))).close()
    backup.copy(path, copy)
    os.chown(state, 1234, 1234)
    for file in (secret, linked):
        file.write_text("of root")
    for suffix in (".backed-up", ".backed-up.new", ".other"):
        sidecar.sibling(path, suffix).symlink_to(secret)
    sidecar.sibling(path, ".ballast").unlink()
    sidecar.sibling(path, ".ballast").hardlink_to(linked)
    sidecar.hand_over(path)
    sidecar.note_backup(path, NOW)
    restored = restore.restore(copy, path, NOW, replaces=True)
    assert restored.aside is not None
    assert [secret.stat().st_uid, secret.read_text(), linked.stat().st_uid] == [0, "of root", 0]
    made = {path.name + suffix for suffix in ("", ".fleet", ".lock", ".backed-up")} | {restored.aside.name}
    assert made <= {name for name, owner in owners(state).items() if owner == 1234}


def test_the_lock_of_a_ledger_empties_no_file_behind_a_link(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of root")
    (tmp_path / "ledger.sqlite.lock").symlink_to(secret)
    with pytest.raises(LedgerError, match=r"ledger\.sqlite\.lock cannot be written"):
        ledger_lock.LedgerLock(tmp_path / "ledger.sqlite")
    assert secret.read_text() == "of root"
