"""Listings of dstack with older runs: those that still matter, their machines, and a machine that serves two runs."""

import pytest

from agent.act.orders.ending_by_label import EndingByLabel
from agent.domain.market.instance import InstanceState
from agent.markets import market_errors
from agent.markets.dstack import horizon, listing, rows
from agent.markets.dstack import market as dstack
from agent.simulator.dstack import world as server
from agent.simulator.vast.http import call_gate
from tests.markets.bench_dstack import BOUNDS, ServerBench, dstack_bench
from tests.markets.scene import LABEL


def history(bench: ServerBench, count: int) -> None:
    """Give the server runs that are over and deleted."""
    for number in range(count):
        run = bench.world.submit({"configuration": {"type": "task"}}, f"old-{number}")
        run.status = run.job_status = "failed"
        run.is_deleted = True
        run.created += len(bench.world.runs) / 1000


@pytest.mark.nightly
async def test_most_listings_leave_out_old_runs_that_are_deleted_and_one_in_a_while_is_whole() -> None:
    async with dstack_bench() as bench:
        history(bench, 250)
        await bench.simulated.advance(60)
        run_id = await bench.rent(await bench.offer())
        for pages, looks in ((4, 1), (1, 5), (1, horizon.WHOLE_EVERY - 5), (4, 1), (1, 1)):
            before = await bench.calls("POST", "/runs/list")
            for _ in range(looks):
                assert [row.instance_id for row in await bench.market.instances()] == [run_id]
            assert await bench.calls("POST", "/runs/list") - before == pages * looks
            await bench.simulated.advance(60)


async def test_a_page_that_lacks_a_run_which_the_server_cannot_read_is_not_the_last_one() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        history(bench, 250)
        list(bench.world.runs.values())[-5].is_unreadable = True
        url = bench.simulated.simulator.url("dstack")
        fresh = dstack.connect(url, lambda: call_gate.DEFAULT_KEY, bench.clock, lambda: 0.5, terrain=dstack.Terrain())
        assert [row.instance_id for row in await fresh.instances()] == [run_id]
        ending = EndingByLabel({"dstack": fresh}, LABEL.split(":")[1], keep_disks=False)
        for _ in range(12):
            await ending.round()
            if ending.is_done:
                break
            await bench.simulated.advance(30.0)
        assert (ending.is_done, (await bench.simulated.truth())["billing_now"]) == (True, [])
        await fresh.close()


async def test_a_machine_whose_events_the_server_has_deleted_is_known_by_its_host_after_a_restart() -> None:
    async with dstack_bench() as bench:
        earlier, run_id = [await bench.rent(await bench.offer()) for _ in range(2)]
        await bench.running(earlier)
        await bench.running(run_id)
        await bench.simulated.advance(31 * 86_400)
        terrain = dstack.Terrain("main", server.FLEET, BOUNDS)
        url = bench.simulated.simulator.url("dstack")
        fresh = dstack.connect(url, lambda: call_gate.DEFAULT_KEY, bench.clock, lambda: 0.5, terrain=terrain)
        assert {row.instance_id for row in await fresh.instances()} == {earlier, run_id}, "no machine is a stranger"
        with pytest.raises(market_errors.Ambiguous):
            await fresh.release(run_id)
        for _ in range(8):
            await bench.simulated.advance(30)
            rows = {row.instance_id: row.bills_gpu for row in await fresh.instances()}
        assert rows == {earlier: True, run_id: False}
        assert (await bench.simulated.truth())["billing_now"] == [earlier]
        await fresh.close()


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        (rows.Machine("m", backend="aws", region="r", hostname="h", created="2026-01-02T01"), "older"),
        (rows.Machine("m", backend="aws", region="r", hostname="h", created="2026-01-03T01"), "newer"),
        (rows.Machine("m", backend="aws", region="r", hostname="h", created="2026-01-01T01"), None),
        (rows.Machine("m", backend="aws", region="r", hostname="i", created="2026-01-03T01"), None),
        (rows.Machine("m", backend="aws", region="r", created="2026-01-03T01"), None),
        (rows.Machine("m", backend="gcp", region="r", hostname="h", created="2026-01-03T01"), None),
    ],
)
def test_a_host_that_a_cloud_gave_out_twice_names_the_run_that_came_before_the_machine(
    machine: rows.Machine, name: str | None
) -> None:
    got = rows.Submission(job_provisioning_data=rows.Provisioned("aws", "r", hostname="h"))
    nowhere = rows.Submission(job_provisioning_data=rows.Provisioned("aws", "r"))
    runs = [
        rows.Run("1", rows.RunSpec("older"), submitted_at="2026-01-02T00", latest_job_submission=got),
        rows.Run("2", rows.RunSpec("newer"), submitted_at="2026-01-03T00", latest_job_submission=got),
        rows.Run("3", rows.RunSpec("nowhere"), submitted_at="2026-01-03T00", latest_job_submission=nowhere),
    ]
    assert listing.run_at_host(machine, listing.by_host(runs)) == name


async def test_a_run_of_ours_is_listed_however_many_newer_ones_there_are_until_it_is_gone() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await bench.market.instances()
        history(bench, 250)
        for _ in range(3):
            await bench.simulated.advance(30)
            (shown,) = await bench.market.instances()
            assert (shown.instance_id, shown.state) == (run_id, InstanceState.RUNNING)
        with pytest.raises(market_errors.Ambiguous):
            await bench.market.release(run_id)
        for _ in range(8):
            await bench.simulated.advance(30)
            (shown,) = await bench.market.instances()
        assert not shown.bills_gpu
        await bench.market.release(run_id)
        for pages in (4, 1):
            before = await bench.calls("POST", "/runs/list")
            assert await bench.market.instances() == []
            assert await bench.calls("POST", "/runs/list") - before == pages


async def test_a_run_that_one_listing_left_out_is_listed_again_once_it_was_asked_for() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        history(bench, 250)
        run, (machine,) = bench.world.runs[run_id], bench.world.machines.values()
        run.is_deleted, machine.status = True, "terminated"
        assert await bench.market.instances() == [], "two wrong words"
        run.is_deleted, machine.status = False, "busy"
        assert run_id not in [row.instance_id for row in await bench.market.instances()]
        assert (await bench.market.instance(run_id)).instance_id == run_id
        assert [row.instance_id for row in await bench.market.instances()] == [run_id]


async def test_a_run_of_somebody_else_is_listed_while_it_or_its_machine_is_there() -> None:
    async with dstack_bench() as bench:
        order = {"type": "task", "fleets": ["gpubid"], "backends": ["aws"], "instance_types": ["l4-1x"]}
        bench.world.submit({"configuration": order}, "a-person")
        await bench.simulated.advance(600)
        assert [row.label for row in await bench.market.instances()] == ["a-person"]
        bench.world.stop("a-person")
        await bench.simulated.advance(5)
        assert [row.label for row in await bench.market.instances()] == ["a-person"]
        await bench.simulated.advance(300)
        assert await bench.market.instances() == []


async def reused(bench: ServerBench) -> tuple[str, str]:
    """Let a run end, and order another one that gets its idle machine; return both ids."""
    offer = await bench.offer()
    first = await bench.rent(offer)
    await bench.running(first)
    await bench.market.instances()
    bench.world.idle_seconds = 30.0
    with pytest.raises(market_errors.Ambiguous):
        await bench.market.release(first)
    second = await bench.rent(offer)
    await bench.simulated.advance(20)
    assert len(bench.world.machines) == 1
    return first, second


async def test_a_run_on_the_machine_of_an_earlier_one_shows_that_and_both_are_over_with_it() -> None:
    async with dstack_bench() as bench:
        first, second = await reused(bench)
        listed = {row.instance_id: row for row in await bench.market.instances()}
        (machine,) = bench.world.machines.values()
        assert listed[second].host_id == f"pool/used-before/{machine.name}"
        assert (await bench.market.instance(second)).host_id == listed[second].host_id
        assert [row.bills_gpu for row in listed.values()] == [True, True], "the first one counts until it is gone"
        await bench.simulated.advance(30)
        await bench.market.instances()
        with pytest.raises(market_errors.Ambiguous):
            await bench.market.release(second)
        for _ in range(8):
            await bench.simulated.advance(30)
            await bench.market.instances()
        for run_id in (first, second):
            await bench.market.release(run_id)
        assert await bench.market.instances() == []


@pytest.mark.parametrize("hides", ["fleet", "server"])
async def test_a_run_that_is_over_and_shows_no_machine_waits_for_a_persons_word(hides: str) -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await bench.market.instances()
        (run,) = bench.world.live_contracts()
        run.spec["configuration"].pop("fleets")
        bench.world.stop(run.name)
        await bench.simulated.advance(30)
        if hides == "fleet":
            for machine in bench.world.machines.values():
                machine.fleet = "another"
        else:
            bench.world.machines.clear()
        (left,) = await bench.market.instances()
        assert (left.state, left.bills_gpu, left.is_called_over) == (InstanceState.OFFLINE, True, True)
        assert "shows no machine" in left.message
        await bench.market.release(run_id, is_gone=True)
        assert [row for row in await bench.market.instances() if row.label] == []


async def test_the_machines_of_an_earlier_fleet_are_watched_while_runs_of_ours_are_in_it() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        url, terrain = bench.simulated.simulator.url("dstack"), dstack.Terrain("main", "a-new-fleet", BOUNDS)
        market = dstack.connect(url, lambda: call_gate.DEFAULT_KEY, bench.clock, lambda: 0.5, terrain=terrain)
        await market.instances()
        with pytest.raises(market_errors.Ambiguous):
            await market.release(run_id)
        for _ in range(8):
            await bench.simulated.advance(30)
            await market.instances()
        await market.release(run_id)
        assert list(await market.instances()) == []
        await market.close()
