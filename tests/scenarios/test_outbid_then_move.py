"""Outbid far above what staying is worth: the old start is cancelled, another host rented, the old one released."""

from pathlib import Path

import pytest

from agent.cli.watch import explain
from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from agent.web.reading import verb_json
from tests.support.world import rehearsed


async def test_outbid_then_move(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, seed=8) as world:
        held = await world.until_running()
        old = world.contract()
        await world.cycle(minutes=30)
        lost_at = world.clock.time()
        world.rival(old.slice.machine_id, bid=held.gpu_rate.dollars * 3)

        await world.until(lambda: len(world.live()) == 2, minutes=1)
        stopped = world.calls("PUT", f"/instances/{old.contract_id}", since=lost_at)
        rented = world.calls("PUT", "/asks", since=lost_at)
        assert len(stopped) == len(rented) == 1
        assert stopped[0][0] <= rented[0][0], "the old lease could still start by itself when the new one was rented"
        assert old.wants_gpu is False

        await world.until(lambda: len(world.leases()) == 1, minutes=60)
        lease = world.lease()
        assert (lease.slot, lease.state) == (held.slot, LeaseState.RUNNING)
        assert lease.host_id != held.host_id
        assert old.ended is not None
        new = world.contract()
        assert new.first_started is not None
        assert new.first_started <= old.ended, "the old one was released before the new one ran"
        lost = (await world.events("lease.interrupted"))[-1]
        assert lost.cause is Cause.OUTBID
        released = (await world.events("lease.released_by_us"))[-1]
        assert (released.lease_id, released.reason_code) == (held.lease_id, "moved")
        assert len(world.calls("PUT", "/asks")) == 2


async def test_each_way_that_was_weighed_is_told_with_its_price_after_it_was_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with rehearsed(tmp_path, seed=8) as world:
        held = await world.until_running()
        await world.cycle(minutes=30)
        world.rival(world.contract().slice.machine_id, bid=held.gpu_rate.dollars * 3)
        await world.until(
            lambda: {lease.host_id for lease in world.leases()} not in ({held.host_id}, set()), minutes=60
        )
        await world.cycle(minutes=10)
        reader = await world.app.ledger.reader()
        decided, weighed = await reader.decisions(), await reader.weighed()
        assert [made.reason.options for made in decided] == [()], "what it does since weighed nothing"
        assert world.app.seen is not None
        shown = verb_json.explained(world.app.seen, decided, weighed, "train")
        assert verb_json.explained(world.app.seen, decided, weighed, "another")["weighed"] == []
        [told] = shown["weighed"]
        ways = {way["name"]: way for way in told["options"]}
        assert "move" in ways
        assert ways.keys() & {"wait", "resume"}
        for way in ways.values():
            dollars = sum(term["figure"] for term in way["terms"] if term["unit"] == "$")
            assert dollars == pytest.approx(way["dollars"])
        holds = next(term["figure"] for term in ways["move"]["terms"] if term["name"] == "chance to hold it")
        assert 0 < holds < 1
        explain._print(shown)
        printed = capsys.readouterr().out
        assert f"last choice in money: {told['at'][:10]}" in printed
        assert "chance to hold it" in printed
        assert f"${ways['move']['dollars']:.4f}" in printed
