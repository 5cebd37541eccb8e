"""Bad days by somebody's hand: the work's own, a person's in the vendor's console, a person's in our files.

Each runs over real processes and ends in a state that `gpubid fleet` explains; none pays twice, leaks, or releases a
healthy lease.
"""

from pathlib import Path

import pytest

from agent.simulator.vast.http.call_gate import Gate
from tests.support import stories

BATCH = ("slots = 1", 'slots = 1\nkind = "batch"')


async def test_the_work_ends_itself_with_the_instance_key(tmp_path: Path) -> None:
    """A batch that destroyed its own instance may be done or may have been robbed: it waits for a person's word."""
    async with stories.begun(tmp_path, BATCH) as (stage, _, held):
        key = Gate().instance_key(int(held["instance"]))
        await stage.console("DELETE", held["instance"], key=key)
        told = await stage.box.until_why("train/0 is held")
        assert "the market says there is no such instance" in told
        assert "a person or the work itself" in told
        assert "`gpubid done train/0` if its work is done, `gpubid resume train/0` to go on" in told
        assert (await stage.box.gpubid("done", "train/0")).code == 0
        told = await stage.box.until_why("train/0 is done by")
        assert "held" not in told
        await stage.looks(3)
        assert await stage.live() == []
        assert await stage.rents() == 1


@pytest.mark.nightly
async def test_the_work_stops_itself_with_the_instance_key(tmp_path: Path) -> None:
    """Its disk is kept, and bills, until a person names the cause; then it is released."""
    async with stories.begun(tmp_path, BATCH) as (stage, _, held):
        key = Gate().instance_key(int(held["instance"]))
        await stage.console("PUT", held["instance"], {"state": "stopped"}, key=key)
        told = await stage.box.until_why("train/0 is held", "so a person or the work itself")
        assert "`gpubid done train/0` if its work is done, `gpubid resume train/0` to go on" in told
        await stage.looks(3)
        assert await stage.ids() == [held["instance"]]
        assert (await stage.box.gpubid("done", "train/0")).code == 0
        await stage.box.until(lambda shown: shown["leases"] == [], "the release")
        assert await stage.live() == []
        assert await stage.rents() == 1


async def test_a_person_destroys_the_instance_in_the_console(tmp_path: Path) -> None:
    """A service is moved once it is proven gone; destroyed again, it waits, and the reason is shown."""
    async with stories.begun(tmp_path) as (stage, _, held):
        await stage.console("DELETE", held["instance"])
        # A second look may come too late: it is missing for two minutes of a fast clock.
        await stage.box.until(
            lambda shown: (
                "counts as running until proven gone" in shown["slots"][0]["why"]
                and [held["state"] for held in shown["leases"]] == ["missing"]
            ),
            "the missing instance",
        )
        again = await stage.box.until(
            lambda shown: [each for each in shown["leases"] if each["state"] == "running"], "another instance"
        )
        assert await stage.ids() == [again[0]["instance"]] != [held["instance"]]
        told = await stage.box.told()
        assert f"no rent on host vast/{held['host']}, after host_gone" in told
        assert "the move of slot train/0, after host_gone without evidence" in told
        await stage.console("DELETE", again[0]["instance"])
        told = await stage.box.until_why("one move in", "a person or the work itself")
        await stage.looks(3)
        assert await stage.live() == []
        assert await stage.rents() == 2


@pytest.mark.nightly
async def test_a_person_stops_the_instance_in_the_console(tmp_path: Path) -> None:
    """It stays stopped for a while, and `fleet` says so; then the very same lease goes on."""
    async with stories.begun(tmp_path, speed=2 * stories.SPEED) as (stage, _, held):
        await stage.console("PUT", held["instance"], {"state": "stopped"})
        told = await stage.box.until_why("a person or the work itself stopped it", "it stays so for 10 minutes")
        assert "`gpubid pause train/0` keeps it stopped, `gpubid release train/0` starts it elsewhere" in told
        assert await stage.ids() == [held["instance"]]
        assert (await stage.box.gpubid("pause", "train/0")).code == 0
        await stage.passes(660)
        told = await stage.box.until_why("paused by uid", "`gpubid resume train/0` ends that")
        assert [row["status"] for row in await stage.live()] == ["stopped"]
        assert (await stage.box.gpubid("resume", "train/0")).code == 0
        assert (await stage.box.running())["lease"] == held["lease"]
        assert await stage.rents() == 1
        assert not await stage.ended(held["instance"])


@pytest.mark.nightly
async def test_the_label_is_edited(tmp_path: Path) -> None:
    """The ledger knows the instance by its id: it stays ours, and its slot is not filled again."""
    async with stories.begun(tmp_path) as (stage, _, held):
        await stage.console("PUT", held["instance"], {"label": "my box"})
        await stage.looks(4)
        assert (await stage.box.running())["lease"] == held["lease"]
        assert await stage.rents() == 1
        assert held["lease"] in await stage.box.told()
        assert (await stage.box.gpubid("drain", "train")).code == 0
        assert (await stage.box.gpubid("release", "train/0")).code == 0
        await stage.box.until_why("train is drained by uid", "`gpubid resume train` ends that")
        assert await stage.live() == []


@pytest.mark.nightly
async def test_the_workload_is_renamed(tmp_path: Path) -> None:
    """Without a word on where its lease belongs the reload is refused; with it the lease goes on under the new name."""
    name, was = ("[workloads.train]", "[workloads.night]"), ("slots = 1", 'slots = 1\nwas = "train"')
    async with stories.begun(tmp_path) as (stage, daemon, held):
        stage.box.write(name)
        await daemon.reload()
        refused = daemon.logs("config.refused")[-1]["problem"]
        assert 'was = "train"' in refused
        assert "gpubid release train" in refused
        assert (await stage.box.fleet())["leases"][0]["slot"] == "train/0"
        stage.box.write(name, was)
        await daemon.reload()
        await stage.box.until(lambda shown: [each["slot"] for each in shown["leases"]] == ["night/0"], "the new name")
        await stage.looks(3)
        assert (await stage.box.running())["instance"] == held["instance"]
        assert "night/0  running" in await stage.box.told()
        assert await stage.ids() == [held["instance"]]
        assert await stage.rents() == 1


async def test_the_cap_is_lowered_under_the_burn(tmp_path: Path) -> None:
    """A reload is refused; a start obeys: it pauses, says which cap, and pays for nothing."""
    low = ("max_fleet_per_hour = 3.00", "max_fleet_per_hour = 0.01")
    async with stories.begun(tmp_path) as (stage, daemon, held):
        stage.box.write(low)
        await daemon.reload()
        assert "max_fleet_per_hour" in daemon.logs("config.refused")[-1]["problem"]
        await stage.looks(2)
        assert (await stage.box.running())["lease"] == held["lease"]
        await daemon.stop()
        async with stage.box.daemon():
            told = await stage.box.until_why("cap")
            assert "train/0  paused" in told
            assert "$0.0100/h" in told
            await stage.looks(3)
            assert [row["status"] for row in await stage.live()] == ["stopped"]
            assert await stage.rents() == 1
