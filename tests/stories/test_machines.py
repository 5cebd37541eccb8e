"""Bad days of machines and accounts: keys, ledgers, disks, clocks, hosts and credit.

Each runs over real processes and ends in a state that `gpubid fleet` explains; none pays twice, leaks, or releases a
healthy lease.
"""

import asyncio
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support import stories

DAY = 86_400.0


@pytest.mark.nightly
async def test_the_key_is_revoked_for_fifteen_minutes(tmp_path: Path) -> None:
    """Nothing is believed gone and nothing is paid; the fix is shown; with the key back all is as before."""
    async with stories.begun(tmp_path, speed=1.5 * stories.SPEED) as (stage, _, held):
        orders = await stage.writes()
        await stage.market.weather("revoked_key")
        await stage.passes(900)
        told = await stage.box.told()
        assert "vast: its listing cannot be read since" in told
        assert "vast does not take the key (401" in told
        assert "check the credential and its permissions" in told
        assert "nothing is paid for, and nothing is believed gone" in told
        await stage.market.still()
        await stage.box.until(lambda shown: shown["notices"] == [], "the end of the notice")
        assert (await stage.box.running())["lease"] == held["lease"]
        assert await stage.writes() == orders


async def test_the_key_is_swapped_for_another_account(tmp_path: Path) -> None:
    """The daemon ends with 2, whenever it meets the other account; its own key takes everything up again."""
    async with stories.begun(tmp_path) as (stage, daemon, held):
        orders = await stage.writes()
        await stage.market.weather("wrong_account")
        assert await daemon.ended() == 2
        async with stage.box.starting() as again:
            assert await again.ended() == 2
        told = await stage.box.told()
        assert "daemon: none runs on this ledger" in told
        assert "this ledger belongs to account" in told
        assert "use the key of that account" in told
        assert held["lease"] in told
        await stage.market.still()
        async with stage.box.daemon():
            assert (await stage.box.running())["lease"] == held["lease"]
            await stage.looks(2)
            assert await stage.writes() == orders
            assert (await stage.box.fleet())["notices"] == []


async def test_the_ledger_is_deleted(tmp_path: Path) -> None:
    """The fleet's id is in the file beside it.

    The instance is adopted, the month's spend counted again, nothing rented.
    """
    async with stories.stage(tmp_path) as stage:
        async with stage.box.daemon() as daemon:
            held = await stage.box.running()
            await stage.passes(120)
            await daemon.stop()
        stage.box.lose_ledger()
        async with stage.box.daemon():
            again = await stage.box.running()
            await stage.looks(3)
            assert (again["instance"], again["slot"]) == (held["instance"], "train/0")
            assert await stage.rents() == 1
            (contract,) = await stage.live()
            charged = sum(contract["charged"].values())
            assert (await stage.box.fleet())["spent_month_dollars"] >= 0.98 * charged - 0.002
            assert "train/0  running" in await stage.box.told()
            assert "adopted" in (await stage.box.gpubid("ledger", "events", "--kind", "orphan.seen")).out


@pytest.mark.nightly
async def test_yesterdays_backup_is_restored(tmp_path: Path) -> None:
    """An instance rented since is found by its label and adopted; yesterday's hold is in force again."""
    async with stories.stage(tmp_path) as stage:
        box = stage.box
        assert (await box.gpubid("drain", "train")).code == 0
        assert (await box.gpubid("ledger", "backup", tmp_path / "old.sqlite")).code == 0
        assert (await box.gpubid("resume", "train")).code == 0
        async with box.daemon() as daemon:
            held = await box.running()
            await daemon.stop()
        box.lose_ledger()
        shutil.copy(tmp_path / "old.sqlite", tmp_path / "ledger.sqlite")
        async with box.daemon():
            again = await box.running()
            await stage.looks(3)
            assert (again["instance"], again["is_held"]) == (held["instance"], False)
            assert await stage.ids() == [held["instance"]]
            assert await stage.rents() == 1
            told = await box.told()
            assert "hold until it is lifted: drain of workload train" in told
            assert "train/0  running" in told


async def test_a_second_daemon_starts_on_another_box(tmp_path: Path) -> None:
    """Same key, same fleet id: the one that sees the other's rent writes nothing more, and says so."""
    async with stories.stage(tmp_path) as stage:
        here, there = stage.box, stage.another(tmp_path / "there")
        async with here.daemon() as first:
            held = await here.running()
            await first.stop()
        for name in ("ledger.sqlite", "ledger.sqlite.fleet"):
            shutil.copy(here.place / name, there.place / name)
        async with here.daemon(), there.daemon():
            await stage.looks(4)
            assert await stage.ids() == [held["instance"]]
            assert (await here.gpubid("release", "train")).code == 0
            await here.running()
            await there.until_noticed("nothing more is written")
            told = await there.told()
            assert "daemon: nothing more is written" in told
            assert "another daemon runs on this fleet" in told
            assert "stop the wrong one" in told
            await stage.looks(6)
            # The first goes on as if alone; meanwhile it may have moved.
            assert await stage.ids() == [(await here.running())["instance"]]
            assert (await there.fleet())["notices"] != []
            assert (await here.fleet())["notices"] == []


@pytest.mark.nightly
async def test_the_disk_is_full(tmp_path: Path) -> None:
    """Nothing is paid for until there is room again, and `fleet` says so; running leases go on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)]
    if os.geteuid() or await (await asyncio.create_subprocess_exec(*mount)).wait():
        pytest.skip("no right to mount a disk here")
    try:
        async with stories.begun(disk) as (stage, _, held):
            _fill(disk / "filler")
            await stage.console("PUT", held["instance"], {"state": "stopped"})
            await stage.box.until_noticed("disk is full")
            told = await stage.box.told()
            assert re.search(r"ledger: .*disk .*full.*; until then nothing is paid for; running leases go on", told)
            await stage.looks(4)
            assert await stage.ids() == [held["instance"]]
            (disk / "filler").unlink()
            await stage.box.until(lambda shown: shown["notices"] == [], "the end of the notice")
            assert (await stage.box.running())["lease"] == held["lease"]
            assert await stage.rents() == 1
    finally:
        await (await asyncio.create_subprocess_exec("umount", "--lazy", str(disk))).wait()


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            return


async def test_the_clock_jumps_a_day_both_ways(tmp_path: Path) -> None:
    """Running leases go on and are metered by the elapsed hours; nothing is paid for until the clock is right again."""
    async with stories.begun(tmp_path) as (stage, _, held):
        for jump, side in ((DAY, "ahead of"), (-DAY, "behind")):
            stage.box.jump(jump)
            await stage.box.until_noticed(side)
            told = await stage.box.told()
            assert f"{side} the market's: set it right" in told
            assert "until then nothing is paid for" in told
            await stage.looks(3)
            assert (await stage.box.running())["lease"] == held["lease"]
        await stage.console("DELETE", held["instance"])
        await stage.box.until(lambda shown: not shown["leases"], "the proof that it is gone")
        told = await stage.box.until_why("clock")
        assert await stage.rents() == 1
        charged = sum(sum(row["charged"].values()) for row in (await stage.market.truth())["contracts"])
        spent = (await stage.box.fleet())["spent_month_dollars"]
        assert abs(spent - charged) < 0.1 * charged + 0.002
        stage.box.jump(0.0)
        await stage.box.running()
        assert await stage.rents() == 2
        assert (await stage.box.fleet())["notices"] == []


async def test_the_host_goes_offline_in_mid_release(tmp_path: Path) -> None:
    """A release goes on being sent until the market says gone, whatever the host does; the slot is filled once."""
    async with stories.begun(tmp_path) as (stage, _, held):
        await stage.market.weather("server_error_before", route="DELETE /instances")
        assert (await stage.box.gpubid("release", "train")).code == 1
        await stage.market.weather("host_offline", machine_id=int(held["host"]))
        await stage.looks(6)
        told = await stage.box.until_why("the market has not confirmed the release")
        assert "train/0  releasing" in told
        assert await stage.ids() == [held["instance"]]
        assert await stage.rents() == 1
        await stage.market.still()
        again = await stage.box.running()
        await stage.looks(3)
        assert await stage.ids() == [again["instance"]] != [held["instance"]]
        assert await stage.rents() == 2


@pytest.mark.nightly
async def test_credit_runs_out_and_returns(tmp_path: Path) -> None:
    """The market stops the lease; nothing else is rented meanwhile, and with credit the same lease goes on."""
    async with stories.begun(tmp_path) as (stage, _, held):
        await stage.market.weather("no_credit")
        told = await stage.box.until_why("credit", "top it up")
        assert "vast: the account's credit is" in told
        await stage.looks(4)
        assert await stage.ids() == [held["instance"]]
        assert await stage.rents() == 1
        await stage.market.still()
        assert (await stage.box.running())["lease"] == held["lease"]
        await stage.looks(2)
        assert await stage.rents() == 1
        assert not await stage.ended(held["instance"])
