"""A ledger that cannot be written says so, loses nothing, and gives its ballast for the last words."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.clock import SteppedClock
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentKind, IntentState
from agent.ledger.file import backup, ledger_check, sidecar
from agent.ledger.file import ballast as ballasts
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from tests.ledger.values import NOW, intent, lease

pytestmark = pytest.mark.only_sqlite


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no right to mount a disk here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


async def write(ledger: Ledger, number: int) -> None:
    async with ledger.transaction() as tx:
        tx.append_event(Event(NOW, EventKind.LEASE_OPENED, evidence="x" * 2000))
        tx.open_lease(lease(number))


async def write_until_refused(ledger: Ledger) -> LedgerError:
    for number in range(10, 600):
        before = ledger.recollection()
        try:
            await write(ledger, number)
        except LedgerError as error:
            assert ledger.recollection() == before
            return error
    pytest.fail("the disk was never full")


async def test_a_full_disk_takes_the_last_words_from_the_ballast(small_disk: Path, clock: SteppedClock) -> None:
    path = small_disk / "ledger.sqlite"
    ledger = await Ledger.open(path, clock=clock)
    ballast = sidecar.sibling(path, ".ballast")
    assert ballast.stat().st_blocks * 512 >= ballasts.BALLAST_BYTES
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
        tx.record_intent(intent(kind=IntentKind.RELEASE, lease_id="l1", instance_id="i1"))
    filler = small_disk / "filler"
    fill(filler)
    error = await write_until_refused(ledger)
    assert error.code is Code.UNWRITABLE
    assert "free space" in error.sentence
    assert ledger.why_unwritable == error.sentence
    assert not ballast.exists()
    # The ballast's room holds what must still be said; paying waits, as the ballast cannot be had back.
    async with ledger.transaction() as tx:
        tx.advance_intent("n1", IntentState.SENT, at=NOW)
    assert ledger.recollection().intents[0].state is IntentState.SENT
    assert f"is full: make room (`df {small_disk}`)" in ledger.why_unwritable
    filler.unlink()
    async with ledger.transaction() as tx:
        tx.advance_intent("n1", IntentState.CONFIRMED, at=NOW)
    assert ledger.is_writable
    assert ballast.exists()
    await ledger.close()
    assert ledger_check.verify(path).findings == ()


async def test_a_start_on_a_full_disk_takes_the_room_of_the_ballast(small_disk: Path, clock: SteppedClock) -> None:
    """SQLite makes its journal at the start, and what bills can only be ended by a daemon that starts."""
    path = small_disk / "ledger.sqlite"
    ledger = await Ledger.open(path, clock=clock)
    await write(ledger, 1)
    await ledger.close()
    fill(small_disk / "filler")
    ledger = await Ledger.open(path, clock=clock)
    assert not ledger.is_writable
    assert [held.lease_id for held in ledger.recollection().leases] == [lease(1).lease_id]
    async with ledger.transaction() as tx:
        tx.record_intent(intent(kind=IntentKind.RELEASE, lease_id="l1", instance_id="i1"))
    await ledger.close()


async def test_a_disk_that_is_too_full_for_a_copy_is_named(small_disk: Path, ledger: Ledger) -> None:
    fill(small_disk / "filler")
    with pytest.raises(LedgerError) as caught:
        backup.copy(ledger.path, small_disk / "copy")
    assert caught.value.code is Code.UNWRITABLE
    assert f"the copy {small_disk}" in caught.value.sentence


def fill(file: Path) -> None:
    with file.open("wb", buffering=0) as handle:
        for size in (65536, 4096, 512):
            try:
                while handle.write(b"\1" * size) == size:
                    pass
            except OSError:
                continue


async def test_a_full_database_is_unwritable_not_forgotten(ledger: Ledger, path: Path) -> None:
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
    pages = await ledger._tables.run(lambda link: link.execute(sa.text("PRAGMA page_count")).scalar())
    await ledger._tables.run(lambda link: link.exec_driver_sql(f"PRAGMA max_page_count={pages}").close())
    assert (await write_until_refused(ledger)).code is Code.UNWRITABLE
    assert not ledger.is_writable
    assert not sidecar.sibling(path, ".ballast").exists()
    await ledger._tables.run(lambda link: link.exec_driver_sql("PRAGMA max_page_count=1000000").close())
    async with ledger.transaction() as tx:
        tx.open_lease(lease(999))
    assert ledger.is_writable
    assert sidecar.sibling(path, ".ballast").exists()


async def test_a_read_only_ledger_is_unwritable(ledger: Ledger) -> None:
    await ledger._tables.run(lambda link: link.exec_driver_sql("PRAGMA query_only=1").close())
    with pytest.raises(LedgerError, match="right to write") as caught:
        await write(ledger, 1)
    assert caught.value.code is Code.UNWRITABLE
    assert ledger.recollection().leases == ()
    assert ledger._tables._connection is not None
    raw: Any = ledger._tables._connection.connection.driver_connection
    raw.execute("PRAGMA query_only=0")
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
    assert ledger.is_writable


async def test_a_disk_without_room_for_the_ballast_starts_unwritable(path: Path, clock: SteppedClock) -> None:
    # A folder in its place: no ballast can be made, as on a full disk.
    sidecar.sibling(path, ".ballast").mkdir()
    ledger = await Ledger.open(path, clock=clock)
    assert not ledger.is_writable
    sidecar.sibling(path, ".ballast").rmdir()
    async with ledger.transaction() as tx:
        tx.open_lease(lease())
    assert ledger.is_writable
    await ledger.close()


async def test_what_was_decided_on_a_memory_that_may_be_stale_is_decided_again(
    tmp_path: Path, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit took place without an answer, and the ledger could not be read after it: nothing is counted twice."""
    ledger = await Ledger.open(tmp_path / "ledger.sqlite", clock=clock)
    run, failures = ledger._tables.run, [True, True]

    async def unanswered(work: Any, *then: Any, **words: Any) -> Any:
        if not failures:
            return await run(work, *then, **words)
        if failures.pop() and failures:
            await run(work)
        raise LedgerError(Code.UNWRITABLE, "no answer")

    monkeypatch.setattr(ledger._tables, "run", unanswered)
    with pytest.raises(LedgerError):
        await write(ledger, 1)
    assert ledger.recollection().leases == ()
    with pytest.raises(LedgerError, match="decided again"):
        await write(ledger, 1)
    assert [held.lease_id for held in ledger.recollection().leases] == [lease(1).lease_id]
    await write(ledger, 2)
    await ledger.close()
