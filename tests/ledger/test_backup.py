"""Backups are whole and checked; verify finds the faults and nothing else."""

# ruff: noqa: ASYNC240 - a test may wait for its own files and programs

import asyncio
import datetime as dt
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import LeaseState
from agent.ledger import reader
from agent.ledger.file import backup, ledger_check, sidecar
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.store import Ledger
from agent.ledger.tables import schema
from agent.ledger.tables.spend_rows import SpendEntry
from tests.ledger.values import NOW, intent, lease

pytestmark = pytest.mark.only_sqlite


async def fill(ledger: Ledger) -> None:
    later = NOW + dt.timedelta(hours=2)
    async with ledger.transaction() as tx:
        tx.record_intent(intent())
        tx.advance_intent("n1", IntentState.SENT, at=NOW)
        tx.advance_intent("n1", IntentState.IN_DOUBT, at=NOW)
        tx.advance_intent("n1", IntentState.CONFIRMED, at=NOW, instance_id="i1", lease_id="l1")
        tx.open_lease(lease(accrued_until=later))
        tx.add_spend(
            SpendEntry(
                "l1",
                "train",
                "vast",
                Tenure.INTERRUPTIBLE,
                NOW.date(),
                gpu=Usd(5),
                running_seconds=7200,
                useful_seconds=7000,
            )
        )
        tx.open_lease(lease(2))
        tx.update_lease(lease(2, state=LeaseState.ENDED, ended_at=later))
        # Counted from the vendor's bill after a loss: it has no lease, and that is sound.
        tx.add_spend(SpendEntry("charges/vast/9", "", "vast", Tenure.ON_DEMAND, NOW.date(), gpu=Usd(5)))
        tx.append_event(Event(NOW, EventKind.LEASE_OPENED, lease_id="l1"))


async def test_a_backup_made_while_the_daemon_writes_is_a_sound_ledger(
    path: Path, tmp_path: Path, clock: SteppedClock
) -> None:
    ledger = await Ledger.open(path, clock=clock)
    await fill(ledger)
    other = await reader.open_reader(path)
    assert other.last_backup() is None

    async def write() -> None:
        for number in range(10, 60):
            async with ledger.transaction() as tx:
                tx.open_lease(lease(number))
                tx.append_event(Event(NOW, EventKind.LEASE_OPENED, lease_id=f"l{number}"))

    copy = tmp_path / "copy.sqlite"
    await asyncio.gather(write(), other.backup(copy, at=NOW))
    assert (await ledger.reader()).last_backup() == NOW
    found = ledger_check.verify(copy)
    assert found.findings == ()
    # Each commit is in it whole or not at all.
    assert found.counted["leases"] - 2 == found.counted["events"] - 1
    await other.close()
    await ledger.close()

    sidecar.sibling(path, ".fleet").replace(sidecar.sibling(copy, ".fleet"))
    restored = await Ledger.open(copy, clock=clock)
    assert restored.fleet_id == ledger.fleet_id
    assert "l1" in {held.lease_id for held in restored.recollection().leases}
    await restored.close()


async def test_a_backup_overwrites_nothing_and_leaves_no_half_file(ledger: Ledger, tmp_path: Path) -> None:
    reading = await ledger.reader()
    taken = tmp_path / "taken"
    taken.write_text("mine")
    with pytest.raises(LedgerError) as caught:
        await reading.backup(taken, at=NOW)
    assert caught.value.code is Code.BAD_BACKUP
    assert taken.read_text() == "mine"
    with pytest.raises(LedgerError) as caught:
        await reading.backup(tmp_path / "no" / "folder" / "copy", at=NOW)
    assert caught.value.code is Code.UNWRITABLE
    assert reading.last_backup() is None
    backup.copy(ledger.path, tmp_path / "copy")
    assert not list(tmp_path.glob("*.part"))


def test_the_copy_that_was_just_made_stays_where_the_clock_was_set_back(tmp_path: Path) -> None:
    made, *later = (tmp_path / backup.name(NOW + dt.timedelta(days=day)) for day in range(4))
    killed, begun = (tmp_path / f"{backup.name(NOW + dt.timedelta(hours=hour))}.part" for hour in (-30, 0))
    for file in (made, *later, killed, begun):
        file.touch()
    for file, at in ((killed, NOW - dt.timedelta(hours=30)), (begun, NOW)):
        os.utime(file, (at.timestamp(), at.timestamp()))
    assert backup.drop_old(made, 2, NOW) == later[:2]
    assert set(tmp_path.iterdir()) == {made, later[2], begun}


async def test_a_sound_ledger_has_no_findings(ledger: Ledger) -> None:
    await fill(ledger)
    found = await (await ledger.reader()).verify()
    assert found.is_sound
    assert found.revision == schema.REVISION
    assert (found.counted["leases"], found.counted["intents"], found.counted["spend"]) == (2, 1, 2)


BREAKS = {
    "intent sent without a time": "UPDATE intents SET sent_at = NULL, doubted_at = NULL",
    "intent denied after it was sent": "UPDATE intents SET state = 'denied'",
    "recorded intent with a time sent": "UPDATE intents SET state = 'recorded', resolved_at = NULL",
    "intent in doubt without a time": "UPDATE intents SET state = 'in_doubt', resolved_at = NULL, doubted_at = NULL",
    "intent doubted before it was sent": "UPDATE intents SET sent_at = NULL, state = 'void'",
    "confirmed rent without an instance": "UPDATE intents SET instance_id = ''",
    "intent of a lease that is not there": "UPDATE intents SET lease_id = 'l9'",
    "lease without an instance": "UPDATE leases SET instance_id = '' WHERE lease_id = 'l1'",
    "lease accrued before it opened": "UPDATE leases SET accrued_until = opened_at - 1 WHERE lease_id = 'l2'",
    "lease ended before it opened": "UPDATE leases SET ended_at = opened_at - 1 WHERE lease_id = 'l2'",
    "spend before its lease opened": "UPDATE spend SET day = '2026-11-19' WHERE lease_id = 'l1'",
    "spend after its lease was accrued": "UPDATE spend SET day = '2026-11-21' WHERE lease_id = 'l1'",
    "more useful than running time": "UPDATE spend SET useful_seconds = 7300 WHERE lease_id = 'l1'",
    "more running time than a day has": "UPDATE spend SET running_seconds = 86500 WHERE lease_id <> 'l1'",
    "more running time than the lease lasted": "UPDATE spend SET running_seconds = 7300 WHERE lease_id = 'l1'",
    "spend of another market than its lease": "UPDATE spend SET market = 'runpod' WHERE lease_id = 'l1'",
}


def test_every_rule_has_a_break() -> None:
    assert set(BREAKS) == {*ledger_check.RULES, *ledger_check.accounts(ledger_check.DAY)}
    assert not set(ledger_check.RULES) & set(ledger_check.accounts(ledger_check.DAY))


@pytest.mark.parametrize("rule", sorted(BREAKS))
async def test_each_rule_finds_its_own_break(path: Path, clock: SteppedClock, rule: str) -> None:
    ledger = await Ledger.open(path, clock=clock)
    await fill(ledger)
    await ledger.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(BREAKS[rule])
    found = ledger_check.verify(path)
    assert not found.is_sound
    assert found.is_damaged is (rule in ledger_check.RULES), "sums that contradict are no damage"
    told = found.findings if rule in ledger_check.RULES else found.inconsistencies
    assert [finding for finding in told if finding.startswith(rule + ": ")]


async def test_damage_is_a_finding_not_an_error(path: Path, tmp_path: Path, clock: SteppedClock) -> None:
    ledger = await Ledger.open(path, clock=clock)
    async with ledger.transaction() as tx:
        for number in range(300):
            tx.append_event(Event(NOW, EventKind.LEASE_OPENED, lease_id=f"l{number}"))
    await ledger.close()
    torn = tmp_path / "torn.sqlite"
    torn.write_bytes(path.read_bytes()[:-20_000])
    garbage = tmp_path / "garbage.sqlite"
    garbage.write_bytes(b"\0garbage" * 1000)
    loose = tmp_path / "loose.sqlite"
    shutil.copy(path, loose)
    with closing(sqlite3.connect(loose, isolation_level=None)) as raw:
        raw.execute("DROP TABLE cooldowns")
        raw.execute(
            "CREATE TABLE cooldowns (scope TEXT, key TEXT, since INTEGER, until INTEGER, code TEXT, count INTEGER)"
        )
    for file in (torn, garbage, loose, tmp_path / "missing.sqlite"):
        assert not ledger_check.verify(file).is_sound, file
    assert ledger_check.verify(loose).findings == ("table cooldowns is not STRICT",)
    assert ledger_check.verify(path).is_sound
