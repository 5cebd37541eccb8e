"""The embedded market outlives the daemon: a stop, a kill -9 and a new start find the rented instances."""

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import programs
from tests.support.programs import until

CONFIG = programs.LIVE.replace(
    'url = "{url}"\ncredential = "vast_api_key"\nspend = true\n', 'simulated = "calm"\n'
).format()


def leases(place: Path) -> list[tuple[str, str]]:
    """Return (lease, state) of everything in the ledger."""
    file = place / "ledger.sqlite"
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as raw:
        return raw.execute("SELECT lease_id, state FROM leases ORDER BY opened_at").fetchall()


def kinds(place: Path) -> set[str]:
    with closing(sqlite3.connect(f"file:{place / 'ledger.sqlite'}?mode=ro", uri=True)) as raw:
        return {kind for (kind,) in raw.execute("SELECT kind FROM events")}


async def _opened(place: Path, count: int = 1) -> list[tuple[str, str]]:
    found = leases(place)
    return found if len(found) >= count else []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_what_was_rented_is_there_after_a_new_start(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "agent.toml").write_text(CONFIG)
    async with programs.daemon(tmp_path) as daemon:
        await daemon.until_told("READY=1")
        ((lease, _),) = await until(lambda: _opened(tmp_path), "a rent")
        daemon.process.send_signal(how)
        await daemon.process.wait()
    async with programs.daemon(tmp_path) as daemon:
        await daemon.until_told("READY=1")
        for _ in range(3):
            await daemon.reload()
        shown = (await programs.gpubid(tmp_path, "fleet", "--json")).json
        assert [row["instance"] for row in shown["leases"]] == [lease.removeprefix("vast-")]
        assert await daemon.stop() == 0
    assert [state for _, state in leases(tmp_path)] in (["starting"], ["running"])
    assert not kinds(tmp_path) & {"lease.missing", "market.fault", "lease.ended"}
    assert not daemon.logs("cycle.failed")
    assert (await programs.gpubid(tmp_path, "ledger", "verify")).code == 0


@pytest.mark.long(62)
@pytest.mark.parametrize("how", ["lost", pytest.param("edited", marks=pytest.mark.nightly)])
async def test_a_market_that_began_anew_ends_what_it_held(tmp_path: Path, how: str) -> None:
    (tmp_path / "agent.toml").write_text(CONFIG)
    async with programs.daemon(tmp_path) as daemon:
        await daemon.until_told("READY=1")
        ((lease, _),) = await until(lambda: _opened(tmp_path), "a rent")
        assert await daemon.stop() == 0
    file = tmp_path / "ledger.sqlite.market-calm.jsonl"
    if how == "lost":
        file.unlink()
    else:
        head, *rest = file.read_text().splitlines()
        file.write_text("\n".join([json.dumps({**json.loads(head), "climate": "another"}), *rest]) + "\n")
    async with programs.daemon(tmp_path) as daemon:
        await daemon.until_told("READY=1")
        found = await until(lambda: _opened(tmp_path, 2), "a new rent")
        assert daemon.logs("market.began_anew")
        assert await daemon.stop() == 0
    assert found[0] == (lease, "ended")
    assert found[1][0] != lease
    assert not daemon.logs("cycle.failed")
    assert (await programs.gpubid(tmp_path, "ledger", "verify")).code == 0


async def test_a_market_that_cannot_be_saved_is_named_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text(CONFIG)
    (tmp_path / "ledger.sqlite.market-calm.jsonl").mkdir()
    ran = await programs.gpubid(tmp_path, "run")
    assert (ran.code, "Traceback" in ran.err) == (1, False)
    assert "ledger.sqlite.market-calm.jsonl cannot be written (Is a directory): make the folder, or let" in ran.err
    assert not (tmp_path / "ledger.sqlite").exists()
