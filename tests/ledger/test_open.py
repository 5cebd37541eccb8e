"""Opening a ledger: who may, the refusals and their messages."""

# ruff: noqa: ASYNC220, ASYNC221, ASYNC240 - a test may wait for its own files and programs

import asyncio
import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd
from agent.ledger import reader
from agent.ledger.file import ledger_check, migrate, sidecar
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from agent.ledger.tables import schema
from agent.ledger.tables.spend_rows import SpendEntry
from tests.ledger.values import NOW, lease

pytestmark = pytest.mark.only_sqlite

HOLD = """
import asyncio, datetime, sys
from pathlib import Path
from agent.clock import SystemClock
from agent.ledger.store import Ledger

async def main():
    ledger = await Ledger.open(Path(sys.argv[1]), clock=SystemClock())
    print(ledger.fleet_id, flush=True)
    sys.stdin.read()
    await ledger.close()

asyncio.run(main())
"""


async def refused(path: Path, clock: SteppedClock) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        await Ledger.open(path, clock=clock)
    return caught.value


async def test_a_second_process_is_refused_and_told_which_has_it(path: Path, clock: SteppedClock) -> None:
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        fleet_id = holder.stdout.readline().strip()
        error = await refused(path, clock)
        assert error.code is Code.LOCKED
        assert f"process {holder.pid}" in error.sentence
        # Reading is not writing.
        other = await reader.open_reader(path)
        assert (await other.meta())["fleet_id"] == fleet_id
        await other.close()
        holder.kill()
        holder.wait()
    # The kernel gave the lock of the killed process back.
    ledger = await Ledger.open(path, clock=clock)
    assert ledger.fleet_id == fleet_id
    error = await refused(path, clock)
    assert (error.code, f"process {os.getpid()}" in error.sentence) == (Code.LOCKED, True)
    await ledger.close()


async def test_a_refused_opening_gives_the_lock_back(path: Path, clock: SteppedClock) -> None:
    path.write_bytes(b"not a database at all" * 100)
    assert (await refused(path, clock)).code is Code.CORRUPT
    handle = os.open(sidecar.sibling(path, ".lock"), os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


async def test_the_fleet_id_is_random_kept_twice_and_stays(path: Path, clock: SteppedClock) -> None:
    first = await Ledger.open(path, clock=clock)
    await first.close()
    assert len(first.fleet_id) == 12
    assert sidecar.read_fleet_id(path) == first.fleet_id
    again = await Ledger.open(path, clock=clock, fleet_id="0123456789ab")
    await again.close()
    assert (again.fleet_id, again.was_lost) == (first.fleet_id, False)
    other = await Ledger.open(path.with_name("other.sqlite"), clock=clock)
    await other.close()
    assert other.fleet_id != first.fleet_id


async def test_a_new_fleet_takes_the_id_it_is_given(path: Path, clock: SteppedClock) -> None:
    ledger = await Ledger.open(path, clock=clock, fleet_id="0123456789ab")
    await ledger.close()
    assert ledger.fleet_id == "0123456789ab"


@pytest.mark.parametrize("leaves_an_empty_file", [False, True])
async def test_a_lost_ledger_keeps_its_fleet_and_says_so_until_settled(
    path: Path, clock: SteppedClock, leaves_an_empty_file: bool
) -> None:
    lost = await Ledger.open(path, clock=clock)
    await lost.close()
    path.unlink()
    if leaves_an_empty_file:
        path.touch()
    for _ in range(2):
        ledger = await Ledger.open(path, clock=clock)
        assert (ledger.fleet_id, ledger.was_lost) == (lost.fleet_id, True)
        await ledger.close()
    ledger = await Ledger.open(path, clock=clock)
    async with ledger.transaction() as tx:
        tx.add_spend(SpendEntry("charges/vast/1", "", "vast", Tenure.ON_DEMAND, NOW.date(), gpu=Usd(5)))
        tx.settle_loss()
    assert not ledger.was_lost
    await ledger.close()
    ledger = await Ledger.open(path, clock=clock)
    assert not ledger.was_lost
    await ledger.close()


async def test_a_missing_second_file_is_written_again(path: Path, clock: SteppedClock) -> None:
    first = await Ledger.open(path, clock=clock)
    await first.close()
    sidecar.sibling(path, ".fleet").unlink()
    again = await Ledger.open(path, clock=clock)
    await again.close()
    assert not again.was_lost
    assert sidecar.read_fleet_id(path) == first.fleet_id


@pytest.mark.parametrize("text", [b"ffffffffffff\n", b"", b"what?\n", b"\xff\xfe"])
async def test_another_fleet_id_in_the_second_file_is_refused(path: Path, clock: SteppedClock, text: bytes) -> None:
    first = await Ledger.open(path, clock=clock)
    await first.close()
    sidecar.sibling(path, ".fleet").write_bytes(text)
    error = await refused(path, clock)
    assert error.code is Code.FLEET_MISMATCH
    assert "delete" in error.sentence
    sidecar.sibling(path, ".fleet").unlink()
    again = await Ledger.open(path, clock=clock)
    assert again.fleet_id == first.fleet_id
    await again.close()


async def bind(ledger: Ledger, market: str, account_id: str) -> None:
    async with ledger.transaction() as tx:
        tx.bind_account(market, account_id)


async def test_a_key_of_another_account_is_refused(path: Path, clock: SteppedClock) -> None:
    ledger = await Ledger.open(path, clock=clock)
    await bind(ledger, "vast", "7")
    await bind(ledger, "vast", "7")
    await bind(ledger, "runpod", "8")
    await ledger.close()
    ledger = await Ledger.open(path, clock=clock)
    assert ledger.recollection().accounts == {"vast": "7", "runpod": "8"}
    with pytest.raises(LedgerError) as caught:
        await bind(ledger, "vast", "9")
    assert caught.value.code is Code.WRONG_ACCOUNT
    assert ledger.recollection().accounts["vast"] == "7"
    await ledger.close()


async def test_an_account_that_is_not_told_gives_way_to_the_first_that_is(path: Path, clock: SteppedClock) -> None:
    ledger = await Ledger.open(path, clock=clock)
    for told, kept in (("", "untold"), ("", "untold"), ("8", "8"), ("", "8")):
        await bind(ledger, "runpod", told)
        assert ledger.recollection().accounts == {"runpod": kept}
    with pytest.raises(LedgerError):
        await bind(ledger, "runpod", "9")
    await ledger.close()


async def test_a_newer_schema_is_refused_by_writer_and_reader(path: Path, clock: SteppedClock) -> None:
    await (await Ledger.open(path, clock=clock)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("UPDATE alembic_version SET version_num = '0999'")
    before = path.read_bytes()
    error = await refused(path, clock)
    assert error.code is Code.NEWER_SCHEMA
    assert "0999" in error.sentence
    with pytest.raises(LedgerError) as caught:
        await reader.open_reader(path)
    assert caught.value.code is Code.NEWER_SCHEMA
    assert path.read_bytes() == before


async def test_a_schema_of_before_the_first_release_is_refused_by_all_and_called_sound(
    path: Path, clock: SteppedClock
) -> None:
    await (await Ledger.open(path, clock=clock)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("UPDATE alembic_version SET version_num = '0016'")
    before = path.read_bytes()
    error = await refused(path, clock)
    assert error.code is Code.UNRELEASED_SCHEMA
    assert "schema 0016" in error.sentence
    assert "`gpubid kill`" in error.sentence
    with pytest.raises(LedgerError) as caught:
        await reader.open_reader(path)
    assert caught.value.code is Code.UNRELEASED_SCHEMA
    with pytest.raises(LedgerError) as caught:
        ledger_check.verify(path)
    assert caught.value.code is Code.UNRELEASED_SCHEMA
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.glob(f"{path.name}.schema-*")] == []


@pytest.mark.parametrize("word", ["cool_off", "since"])
async def test_other_tables_under_the_first_schemas_name_are_an_unreleased_builds_and_called_sound(
    path: Path, clock: SteppedClock, word: str
) -> None:
    """One has a column and one a scope of another name, as builds between two commits had."""
    path.touch()
    migrate.upgrade_to(path, schema.FIRST)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        told = "UPDATE sqlite_master SET sql = replace(sql, ?, 'earlier_word') WHERE name = 'cooldowns'"
        assert raw.execute(told, (word,)).rowcount == 1
    before = path.read_bytes()
    error = await refused(path, clock)
    assert error.code is Code.UNRELEASED_SCHEMA
    assert "sound and was not touched" in error.sentence
    for asked in (lambda: migrate.stored_revision(path), lambda: ledger_check.verify(path)):
        with pytest.raises(LedgerError) as caught:
            asked()
        assert caught.value.code is Code.UNRELEASED_SCHEMA
    assert path.read_bytes() == before


async def test_somebody_elses_database_is_refused_and_left_alone(path: Path, clock: SteppedClock) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE cookies (name TEXT)")
    before = path.read_bytes()
    error = await refused(path, clock)
    assert error.code is Code.CORRUPT
    assert "no ledger of gpubid" in error.sentence
    assert path.read_bytes() == before


async def test_a_damaged_page_is_found_at_opening(path: Path, clock: SteppedClock) -> None:
    ledger = await Ledger.open(path, clock=clock)
    async with ledger.transaction() as tx:
        for number in range(500):
            tx.open_lease(lease(number))
    await ledger.close()
    damaged = bytearray(path.read_bytes())
    size = len(damaged)
    damaged[size // 2 : size // 2 + 8192] = b"\xaa" * 8192
    path.write_bytes(damaged)
    error = await refused(path, clock)
    assert error.code is Code.CORRUPT
    assert "restore the newest backup" in error.sentence


async def test_a_missing_folder_is_not_made(tmp_path: Path, clock: SteppedClock) -> None:
    error = await refused(tmp_path / "typo" / "ledger.sqlite", clock)
    assert error.code is Code.UNWRITABLE
    assert not (tmp_path / "typo").exists()


async def test_nobody_else_may_read_what_is_beside_it(path: Path, clock: SteppedClock) -> None:
    ledger = await Ledger.open(path, clock=clock)
    await (await ledger.reader()).backup(path.with_name("copy.sqlite"), at=NOW)
    modes = {file.name: file.stat().st_mode & 0o077 for file in path.parent.iterdir()}
    await ledger.close()
    assert len(modes) >= 7
    assert set(modes.values()) == {0}


async def test_reading_before_there_is_a_ledger(path: Path) -> None:
    with pytest.raises(LedgerError) as caught:
        await reader.open_reader(path)
    assert caught.value.code is Code.MISSING
    assert list(path.parent.iterdir()) == []


async def test_a_cancelled_opening_ends_after_its_thread(
    path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the folder of a rehearsal is deleted while the thread still writes into it."""
    began, may_end, ends = threading.Event(), threading.Event(), []

    def slow(_: Path) -> None:
        began.set()
        assert may_end.wait(60)
        ends.append("thread")

    monkeypatch.setattr(migrate, "prepare", slow)
    opening = asyncio.create_task(Ledger.open(path, clock=clock))
    opening.add_done_callback(lambda _: ends.append("opening"))
    assert await asyncio.to_thread(began.wait, 60)
    for _ in range(2):
        opening.cancel()
        await asyncio.wait({opening}, timeout=0.05)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert ends == ["thread", "opening"]
    monkeypatch.undo()
    # The lock was given back.
    await (await Ledger.open(path, clock=clock)).close()


async def test_an_odd_path_is_no_hindrance(tmp_path: Path, clock: SteppedClock) -> None:
    odd = tmp_path / "50% of a ?strange #name é.sqlite"
    ledger = await Ledger.open(odd, clock=clock)
    await ledger.close()
    assert migrate.stored_revision(odd) == schema.REVISION


async def test_opening_an_up_to_date_ledger_does_not_import_alembic(path: Path, clock: SteppedClock) -> None:
    await (await Ledger.open(path, clock=clock)).close()
    program = HOLD.replace(
        "asyncio.run(main())", "asyncio.run(main()); import json; print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], input="", capture_output=True, text=True, check=True
    )
    modules = json.loads(done.stdout.splitlines()[1])
    assert "sqlalchemy" in modules
    assert not [name for name in modules if name.split(".")[0] in {"alembic", "mako"}]


async def test_every_connection_survives_power_loss_and_waits_its_turn(ledger: Ledger) -> None:
    expected = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5000, "trusted_schema": 0}
    for wire in (ledger._tables, (await ledger.reader())._tables):
        found = {
            name: await wire.run(lambda link, name=name: link.exec_driver_sql(f"PRAGMA {name}").scalar())  # type: ignore[misc]
            for name in expected
        }
        assert found == expected
