"""Over real HTTP: an instance that bills in no ledger, and one that outlasts a kill, is reported until it is gone."""

from pathlib import Path

from agent.cli.watch import fleet
from agent.ledger.ledger_errors import LedgerError
from tests.support import spending
from tests.support.world import FLEET, Rehearsed, rehearsed


def told(world: Rehearsed) -> dict[str, str]:
    return {notice.code: notice.sentence for notice in world.app.notices()}


async def test_an_instance_that_the_ledger_cannot_take_up_is_told_after_three_listings(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        await world.until_running()
        await world.close()
        world.is_checked = False
        stranger = world.foreign(f"gpubid:{FLEET}:train:0:feedfacefeedface")
        world.clock.advance(30)
        world.refuse_rows("leases")
        await world.open()
        seen = []
        for _ in range(4):
            try:
                await world.cycle()
            except LedgerError:
                world.clock.advance(15)
            seen.append("unaccounted" in told(world))
        assert seen == [False, False, True, True]
        assert str(stranger.contract_id) in told(world)["unaccounted"]
        world.accept_rows()
        await world.restart()
        await world.cycle(minutes=3)
        assert "unaccounted" not in told(world), "held and counted, or adopted: another notice reports that instead"


async def test_what_bills_five_minutes_after_a_kill_is_told_until_it_is_gone(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        lease = await world.until_running()
        for verb in ("DELETE", "PUT"):
            world.weather("server_error_before", route=f"{verb} /instances")
        await spending.kill(world.app)
        await world.cycle(minutes=4)
        assert "bills_after_kill" not in told(world)
        assert world.app.billing_watch.seen.remaining
        await spending.kill(world.app)
        await world.cycle(minutes=2)
        assert lease.lease_id in told(world)["bills_after_kill"], "the same kill again does not begin anew"
        await world.restart()
        await world.cycle()
        assert lease.lease_id in told(world)["bills_after_kill"], "a restart forgets nothing of it"
        world.still()
        await world.cycle(minutes=10)
        assert world.live() == []
        assert "bills_after_kill" not in told(world)
        assert world.app.billing_watch.seen.killed_at is None


async def test_fleet_tells_what_a_kill_left_also_without_a_daemon(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        lease = await world.until_running()
        for verb in ("DELETE", "PUT"):
            world.weather("server_error_before", route=f"{verb} /instances")
        await spending.kill(world.app)
        world.clock.advance(600)
        # By the ledger alone, on a machine whose clock is far beyond the story's.
        shown = await fleet._shown(world.config, await world.app.ledger.reader())
        told = {row["code"]: row["sentence"] for row in shown["notices"]}
        assert lease.lease_id in told["bills_after_kill"]
