"""The end of a rehearsal: a kept ledger is metered up to it, and a signal leaves no temporary file."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.programs import LIVE, PATIENCE_SECONDS, gpubid, until

START = "2026-07-27T0"


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.nightly), signal.SIGHUP])
async def test_a_signal_ends_it_and_leaves_no_folder(tmp_path: Path, number: signal.Signals) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "agent.toml").write_text(LIVE.format(url="http://127.0.0.1:1"))
    words = [sys.executable, "-m", "agent", "rehearse", "--climate", "calm", "--hours", "1000"]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).parents[2])}
    program = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, env=environment)
    try:
        await until(lambda: list(temporary.glob("*/*.sqlite")), "the ledger of the rehearsal")
        program.send_signal(number)
        assert await asyncio.wait_for(program.wait(), PATIENCE_SECONDS) == 128 + number
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert list(temporary.iterdir()) == []


@pytest.mark.nightly
async def test_verbs_meter_a_kept_ledger_up_to_the_end_of_the_rehearsal(tmp_path: Path) -> None:
    text = LIVE.format(url="http://127.0.0.1:1").replace('"ledger.sqlite"', '"kept/rehearsal.sqlite"')
    (tmp_path / "agent.toml").write_text(text)
    ran = await gpubid(tmp_path, "rehearse", "--climate", "calm", "--hours", "2", "--json", "--keep-ledger", "kept")
    assert ran.code == 0, ran
    spent = pytest.approx(ran.json["spend"], abs=1e-5)
    fleet = await gpubid(tmp_path, "fleet", "--json")
    assert fleet.json["now"].startswith(f"{START}2:00")
    assert [row["state"] for row in fleet.json["leases"]] == ["running"]
    assert fleet.json["spent_today_dollars"] == spent
    (notice,) = fleet.json["notices"]
    assert notice["sentence"] == "a rehearsal wrote this ledger, so this is its last state, and nothing bills"
    status = await gpubid(tmp_path, "status", "--json")
    assert status.json["spent_today_dollars"] == spent
    assert all(row["used_dollars"] < row["cap_dollars"] for row in status.json["caps"])
    for verb in ("spend", "savings"):
        report = await gpubid(tmp_path, verb, "--json")
        assert report.json["as_of"].startswith(f"{START}2:00"), report
    learned = await gpubid(tmp_path, "strategy", "learned", "--json")
    assert learned.json["now"].startswith(f"{START}2:00")


@pytest.mark.nightly
async def test_a_killed_rehearsal_ends_with_its_last_cycle(tmp_path: Path) -> None:
    text = LIVE.format(url="http://127.0.0.1:1").replace('"ledger.sqlite"', '"kept/rehearsal.sqlite"')
    (tmp_path / "agent.toml").write_text(text)
    words = [sys.executable, "-m", "agent", "rehearse", "--climate", "calm", "--hours", "1000", "--keep-ledger", "kept"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    program = await asyncio.create_subprocess_exec(*words, cwd=tmp_path, env=environment)
    try:
        await until((tmp_path / "kept/rehearsal.sqlite").exists, "the ledger of the rehearsal")
        await until(lambda: _has_lease(tmp_path), "its first lease")
    finally:
        program.kill()
        await program.wait()
    fleet = (await gpubid(tmp_path, "fleet", "--json")).json
    assert fleet["now"] < "2026-10", "1,000 hours from its start end before that, and this machine's clock is later"
    assert "a rehearsal wrote this ledger" in fleet["notices"][0]["sentence"]


async def _has_lease(place: Path) -> bool:
    fleet = await gpubid(place, "fleet", "--json")
    return fleet.code == 0 and bool(fleet.json["leases"])


@pytest.mark.nightly
async def test_verbs_of_the_next_cycle_name_the_verbs_that_read_a_kept_ledger(tmp_path: Path) -> None:
    text = LIVE.format(url="http://127.0.0.1:1").replace('"ledger.sqlite"', '"kept/rehearsal.sqlite"')
    (tmp_path / "agent.toml").write_text(text)
    await gpubid(tmp_path, "rehearse", "--climate", "calm", "--hours", "0.1", "--keep-ledger", "kept")
    for verb in ("plan", "explain", "run"):
        asked = await gpubid(tmp_path, verb)
        assert asked.code == 2, asked
        assert "a rehearsal wrote this ledger and ended at 2026-07-27 00:06:" in asked.err
        assert "it has no next cycle: `gpubid fleet`, `gpubid spend`" in asked.err


@pytest.mark.nightly
async def test_it_begins_when_it_is_told_to_as_for_the_windows_of_a_night_in_which_clocks_change(
    tmp_path: Path,
) -> None:
    text = LIVE.format(url="http://127.0.0.1:1").replace('"ledger.sqlite"', '"kept/rehearsal.sqlite"')
    window = 'outside = "pause"\nwindows = [{ cron = "30 2 * * *", for = "30m", zone = "Europe/Berlin" }]\n'
    (tmp_path / "agent.toml").write_text(text.replace('strategy = "patient"\n', f'strategy = "patient"\n{window}'))
    words = ("--climate", "calm", "--hours", "2", "--start", "2027-03-28T00:00:00Z", "--json", "--keep-ledger", "kept")
    ran = await gpubid(tmp_path, "rehearse", *words)
    assert (ran.code, ran.json["start"]) == (0, "2027-03-28T00:00:00+00:00"), ran
    events = (await gpubid(tmp_path, "ledger", "events", "--json")).json
    opened = [event["at"] for event in events if event["kind"] == "window.opened"]
    assert [at[:16] for at in opened] == ["2027-03-28T01:00"], "the clock skips half past two, so it begins at the skip"
    wrong = await gpubid(tmp_path, "rehearse", "--start", "soon")
    assert (wrong.code, "--start" in wrong.err) == (2, True)
