"""The end of a run at dstack: released is not gone, and `terminated` is believed only of an end that we watched."""

from collections.abc import Mapping

import pytest

from agent.act.orders.ending_by_label import EndingByLabel
from agent.domain.market.instance import Instance, InstanceState
from agent.markets import market_errors
from agent.markets.dstack import market as dstack
from agent.markets.dstack import rows, rules
from agent.markets.dstack.endings import Endings
from agent.simulator.dstack import world as server
from agent.simulator.instances.container_state import Container
from agent.simulator.vast.http import call_gate
from tests.markets.bench_dstack import BOUNDS, ServerBench, dstack_bench

CLOUDS = {"aws": 1e9}
"""The server has a client of the cloud all the time, also after the last look."""


def machine(status: str, backend: str | None = "aws") -> rows.Machine:
    return rows.Machine(id="m", status=status, backend=backend)


def gone(looks: list[tuple[float, str]], clouds: Mapping[str, float] = CLOUDS) -> bool:
    """Return whether a machine is proven gone after looks at these seconds, and one more of the last; busy before."""
    endings = Endings()
    before = [(looks[0][0] - 30, "busy")] if looks[0][1] == "busy" else []
    for at, status in [*before, *looks, (looks[-1][0] + 30, looks[-1][1])]:
        endings.look([machine(status)], clouds, at)
    return endings.is_gone(machine(looks[-1][1]))


def every(seconds: float, until: float, status: str) -> list[tuple[float, str]]:
    return [(at * seconds, status) for at in range(int(until // seconds) + 1)]


def test_an_end_that_was_watched_is_believed() -> None:
    assert gone([(0, "busy"), (30, "terminating"), (60, "terminated")])
    assert gone([(0, "busy"), (30, "terminated")]), "it may end between two looks"
    assert gone([(0, "busy"), *((at + 60, word) for at, word in every(60, 600, "terminating")), (720, "terminated")])


def test_an_end_is_not_believed_after_twelve_minutes_or_a_gap_or_if_it_was_never_watched() -> None:
    slow = [(0, "busy"), *((at + 60, word) for at, word in every(60, 660, "terminating")), (721, "terminated")]
    assert not gone(slow), "the server gives up after 15 minutes"
    assert not gone([(0, "busy"), (121, "terminated")])
    assert not gone([(0, "busy"), (30, "terminating"), (151, "terminating"), (180, "terminated")])
    assert not gone([(0, "terminated")])
    assert not gone([(0, "terminating"), (30, "terminated")]), "nobody knows since when it was being ended"


@pytest.mark.parametrize("cloud", rules.UNPROVEN_ENDS)
def test_an_end_at_a_cloud_whose_errors_the_server_takes_for_ends_is_never_believed(cloud: str) -> None:
    endings, last = Endings(), machine("terminated", backend=cloud)
    for at, status in ((-30, "busy"), (0, "busy"), (30, "terminating"), (60, "terminated"), (90, "terminated")):
        endings.look([machine(status, backend=cloud)], {cloud: 1e9}, at)
    assert (endings.is_gone(last), endings.is_nearly_proven(last)) == (False, False)


def test_an_end_is_not_believed_while_its_cloud_is_away() -> None:
    endings = Endings()
    endings.look([machine("busy")], CLOUDS, -30)
    endings.look([machine("busy")], CLOUDS, 0)
    endings.look([machine("terminating")], {}, 30)
    endings.look([machine("terminated")], CLOUDS, 60)
    assert not endings.is_gone(machine("terminated"))


def test_a_machine_that_is_whole_again_may_be_watched_anew() -> None:
    assert gone([(0, "busy"), (200, "busy"), (230, "busy"), (260, "terminated")])
    again = [(at + 30, word) for at, word in every(60, 900, "busy")]
    assert gone([(0, "terminating"), *again, (960, "terminated")])


@pytest.mark.parametrize("word", ["idle", "?", "busy"])
def test_words_that_take_an_end_back_for_less_than_a_quarter_of_an_hour_are_not_believed(word: str) -> None:
    """The server gave the machine up, and one field of some listings is wrong."""
    given_up = [(0.0, "busy"), *((at + 30, "terminating") for at, _ in every(60, 900, "terminating"))]
    wrong = [(at + 1050, word) for at, _ in every(60, 780, word)]
    assert not gone([*given_up, (990, "terminated"), *wrong, (1890, "terminated")])


def test_a_machine_that_was_proven_gone_is_so_again_after_two_looks_however_late() -> None:
    endings = Endings()
    for at, status in ((0, "busy"), (30, "busy"), (60, "terminated"), (90, "terminated"), (4000, "idle")):
        endings.look([machine(status)], CLOUDS, at)
    endings.look([machine("terminated")], CLOUDS, 4030)
    assert not endings.is_gone(machine("terminated"))
    endings.look([machine("terminated")], CLOUDS, 4060)
    assert endings.is_gone(machine("terminated"))


def test_one_look_after_a_restart_proves_no_machine_whole() -> None:
    assert not gone([(0, "idle"), (30, "terminated")])


def test_one_wrong_word_proves_nothing() -> None:
    endings = Endings()
    for at, status in enumerate(("busy", "busy", "terminated", "terminating", "terminated")):
        endings.look([machine(status)], CLOUDS, at)
        assert not endings.is_gone(machine(status))
    endings.look([machine("terminated")], CLOUDS, 5)
    assert endings.is_gone(machine("terminated"))
    endings.look([machine("terminating")], CLOUDS, 6)
    assert not endings.is_gone(machine("terminating"))
    assert not Endings().is_gone(machine("terminated", backend=None))


async def stop(bench: ServerBench, run_id: str) -> None:
    """Release a run whose machine is still there: the server's yes is no end."""
    with pytest.raises(market_errors.Ambiguous, match="bills until its cloud"):
        await bench.market.release(run_id)


async def listed(bench: ServerBench) -> list[Instance]:
    return list(await bench.market.instances())


async def looked(bench: ServerBench, seconds: float, step: float = 30.0) -> None:
    """Look as often as a daemon."""
    for _ in range(int(seconds // step)):
        await bench.simulated.advance(step)
        await listed(bench)


async def test_a_released_run_counts_until_its_machine_is_gone_and_is_deleted_then() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        running = await bench.running(run_id)
        await looked(bench, 60)
        await stop(bench, run_id)
        (ending,) = await listed(bench)
        assert (ending.state, ending.bills_gpu, ending.is_wanted_running) == (InstanceState.UNKNOWN, True, False)
        await stop(bench, run_id)
        assert await bench.calls("POST", "/runs/delete") == 0
        for _ in range(6):
            await looked(bench, 30)
            assert "nobody watched" not in (await listed(bench))[0].message
        (over,) = await listed(bench)
        assert (over.bills_gpu, over.gpu_rate) == (False, running.gpu_rate)
        assert (await bench.simulated.truth())["billing_now"] == []
        await bench.market.release(run_id)
        assert await listed(bench) == []
        with pytest.raises(market_errors.NotFound):
            await bench.market.instance(run_id)
        await bench.market.release(run_id)


async def test_a_machine_that_the_server_gave_up_goes_on_counting() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await bench.simulated.control("POST", "/give_up", {"market": "dstack", "share": 1})
        await looked(bench, 60)
        await stop(bench, run_id)
        await looked(bench, 1200)
        (left,) = await listed(bench)
        assert (left.state, left.bills_gpu, left.is_called_over) == (InstanceState.OFFLINE, True, True)
        assert "nobody watched the end" in left.message
        await stop(bench, run_id)
        assert await bench.calls("POST", "/runs/delete") == 0
        assert (await bench.simulated.truth())["billing_now"] == [run_id], "and it does bill"
        await bench.market.release(run_id, is_gone=True)
        assert [one.label for one in await listed(bench)] == [], "its machine has no word of its own left"


async def test_a_gentle_release_signals_the_work_once_and_a_hard_one_ends_it_at_once() -> None:
    async with dstack_bench() as bench:
        soft, hard = [await bench.rent(await bench.offer()) for _ in range(2)]
        await bench.running(soft)
        await bench.running(hard)
        await looked(bench, 60)
        for _ in range(2):
            with pytest.raises(market_errors.Unfinished):
                await bench.market.release(soft, is_gentle=True)
        assert await bench.calls("POST", "/runs/stop") == 1, "a second one would be a new order to the server"
        run = bench.world.runs[soft]
        assert (run.reason, run.container) == ("terminated_by_user", Container.RUNNING)
        assert run.signalled is not None
        await stop(bench, hard)
        run = bench.world.runs[hard]
        assert (run.reason, run.container, run.signalled) == ("aborted_by_user", Container.EXITED, None)
        with pytest.raises(market_errors.Unfinished):
            await bench.market.release(hard, is_gentle=True)
        assert await bench.calls("POST", "/runs/stop") == 2, "a gentle stop would soften the hard one"
        await stop(bench, soft)
        assert await bench.calls("POST", "/runs/stop") == 3, "a hard one is sent again until it is over"
        await looked(bench, 240)
        assert [row.bills_gpu for row in await listed(bench)] == [False, False]


async def test_a_persons_word_ends_no_run_that_is_active() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        with pytest.raises(market_errors.Ambiguous):
            await bench.market.release(run_id, is_gone=True)
        assert await bench.calls("POST", "/runs/delete") == 0


@pytest.mark.parametrize("gap", ["restart", "silence", "cloud"])
async def test_an_end_that_nobody_could_watch_goes_on_counting(gap: str) -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await looked(bench, 60)
        await stop(bench, run_id)
        if gap == "cloud":
            await listed(bench)
            await bench.simulated.control("POST", "/backends", {"market": "dstack", "names": []})
        if gap == "silence":
            await bench.simulated.advance(180)
        else:
            await looked(bench, 180)
        market = bench.market
        if gap == "restart":
            terrain = dstack.Terrain("main", server.FLEET, BOUNDS)
            url = bench.simulated.simulator.url("dstack")
            market = dstack.connect(url, lambda: call_gate.DEFAULT_KEY, bench.clock, lambda: 0.5, terrain=terrain)
        (left,) = await market.instances()
        assert (left.state, left.bills_gpu, left.is_called_over) == (InstanceState.OFFLINE, True, True)
        if gap == "restart":
            await market.close()


async def test_a_run_that_is_called_deleted_counts_while_its_machine_is_there() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await listed(bench)
        (run,) = bench.world.live_contracts()
        run.is_deleted = True
        (shown,) = await listed(bench)
        assert (shown.instance_id, shown.state, shown.bills_gpu) == (run_id, InstanceState.RUNNING, True)
        assert (await bench.market.instance(run_id)).bills_gpu
        await stop(bench, run_id)
        await looked(bench, 240)
        (over,) = await listed(bench)
        assert not over.bills_gpu
        await bench.market.release(run_id)
        assert await listed(bench) == []


@pytest.mark.parametrize("is_before_the_giving_up", [True, False])
async def test_a_run_that_a_person_deletes_counts_until_its_machine_is_proven_gone(
    is_before_the_giving_up: bool,
) -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await bench.simulated.control("POST", "/give_up", {"market": "dstack", "share": 1})
        await looked(bench, 60)
        await stop(bench, run_id)
        await looked(bench, 300 if is_before_the_giving_up else 1200)
        bench.world.delete(next(iter(bench.world.runs.values())).name)
        await looked(bench, 1200)
        (left,) = await listed(bench)
        assert (left.instance_id, left.state, left.bills_gpu) == (run_id, InstanceState.OFFLINE, True)
        assert (left.is_called_over, "nobody watched the end" in left.message) == (True, True)
        assert (await bench.market.instance(run_id)).bills_gpu
        await stop(bench, run_id)
        assert (await bench.simulated.truth())["billing_now"] == [run_id], "and it does bill"
        await bench.market.release(run_id, is_gone=True)
        assert await listed(bench) == []
        assert await bench.calls("POST", "/runs/delete") == 0, "it is deleted already"


async def test_a_run_that_was_deleted_before_a_restart_is_not_released_without_a_persons_word() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await bench.simulated.control("POST", "/give_up", {"market": "dstack", "share": 1})
        await stop(bench, run_id)
        await looked(bench, 1200)
        bench.world.delete(next(iter(bench.world.runs.values())).name)
        terrain = dstack.Terrain("main", server.FLEET, BOUNDS)
        url = bench.simulated.simulator.url("dstack")
        market = dstack.connect(url, lambda: call_gate.DEFAULT_KEY, bench.clock, lambda: 0.5, terrain=terrain)
        assert list(await market.instances()) == [], "a server keeps thousands of deleted runs"
        with pytest.raises(market_errors.Unfinished, match="not proven gone"):
            await market.release(run_id)
        await market.release(run_id, is_gone=True)
        await market.close()


@pytest.mark.parametrize("looks", [0, 1, 2, 40])
async def test_a_machine_that_was_over_and_is_there_again_says_when_it_last_was_over(looks: int) -> None:
    """The server never takes an end back, so some of its words were wrong. One look more may prove nothing."""
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await listed(bench)
        (run,) = bench.world.live_contracts()
        await stop(bench, run_id)
        assert run.machine is not None
        while run.machine.status != "terminated":
            await bench.simulated.advance(30.0)
        run.is_deleted = True
        await looked(bench, 30 * looks)
        over_at = bench.clock.now()
        run.machine.status = "idle"
        await bench.simulated.advance(30.0)
        (shown,) = await listed(bench)
        assert (shown.instance_id, shown.bills_gpu) == (run_id, True)
        assert shown.was_over_at == (over_at if looks >= 2 else None)
        await bench.simulated.advance(30.0)
        assert (await bench.market.instance(run_id)).was_over_at == shown.was_over_at
        run.machine.status = "terminated"
        await bench.simulated.advance(30.0)
        (again,) = await listed(bench)
        assert (again.bills_gpu, again.was_over_at) == (True, shown.was_over_at)


async def test_without_a_fleet_as_for_a_kill_by_label_all_machines_are_watched() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        url = bench.simulated.simulator.url("dstack")
        bare = dstack.connect(url, lambda: call_gate.DEFAULT_KEY, bench.clock, lambda: 0.5, terrain=dstack.Terrain())
        await bare.instances()
        with pytest.raises(market_errors.Ambiguous):
            await bare.release(run_id)
        for _ in range(8):
            await bench.simulated.advance(30.0)
            await bare.instances()
        await bare.release(run_id)
        assert list(await bare.instances()) == []
        await bare.close()


@pytest.mark.parametrize("share", [0, 1], ids=["taken back", "given up"])
async def test_a_kill_by_label_waits_for_no_end_that_nobody_can_prove(share: int) -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await bench.simulated.control("POST", "/give_up", {"market": "dstack", "share": share})
        ending = EndingByLabel({"dstack": bench.market}, "0123456789ab", keep_disks=True)
        for _ in range(40):
            seen = await ending.round()
            if ending.is_done or ending.is_for_a_person:
                break
            assert all("pause" not in said for tried in seen.tried.values() for said in tried)
            await bench.simulated.advance(30.0)
        assert (ending.is_done, ending.is_for_a_person) == (not share, bool(share))
        told = [said for tried in seen.tried.values() for said in tried]
        assert any("nobody watched the end of run" in said for said in told) is bool(share)
        assert (await bench.simulated.truth())["billing_now"] == [run_id] * share


async def test_a_lost_machine_is_offline_and_bills_until_it_is_gone() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await looked(bench, 60)
        machine_id = (await bench.contracts())[0]["machine_id"]
        bench.world.set_host_gone(machine_id)
        await looked(bench, 30)
        (lost,) = await listed(bench)
        assert (lost.state, lost.bills_gpu) == (InstanceState.OFFLINE, True)
        await looked(bench, 150)
        (over,) = await listed(bench)
        assert (over.state, over.bills_gpu, over.is_called_over) == (InstanceState.OFFLINE, False, False)


async def test_a_container_that_ended_is_told_as_that() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        (run,) = bench.world.live_contracts()
        bench.world.containers.exit(run, None)
        (ended,) = await listed(bench)
        assert (ended.state, ended.bills_gpu) == (InstanceState.EXITED, True)
