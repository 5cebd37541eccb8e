"""The server's clients of clouds: without one it calls a machine terminated that it never ended."""

import asyncio
import random
from typing import Any

import pytest

from agent.domain.market.instance import InstanceState
from agent.markets import market_errors
from agent.markets.dstack.endings import Endings
from agent.simulator.dstack.cloud_clients import CloudClients
from tests.markets.bench_dstack import OF_PROJECT, ServerBench, dstack_bench
from tests.markets.test_dstack_endings import listed, looked, machine, stop


@pytest.mark.parametrize(
    ("proofs", "is_believed"),
    [
        ((-10.0, -10.0, 20.0, 50.0), True),
        ((-10.0, -10.0, 20.0, None), False),
        ((-10.0, None, 20.0, 50.0), False),
        ((-10.0, -10.0, 20.0, 20.0), False),
        ((-10.0, -121.0, -121.0, 50.0), False),
    ],
    ids=["all the time", "not after it", "not before it", "no word after it", "too long before it"],
)
def test_an_end_is_believed_only_if_the_server_had_a_client_of_the_cloud_before_and_after_it(
    proofs: tuple[float | None, ...], is_believed: bool
) -> None:
    endings = Endings()
    words = ("busy", "busy", "terminated", "terminated")
    for at, status, proof in zip((-30.0, 0.0, 30.0, 60.0), words, proofs, strict=True):
        endings.look([machine(status)], {} if proof is None else {"aws": proof}, at)
    assert endings.is_gone(machine("terminated")) is is_believed


async def no_clients(bench: ServerBench) -> None:
    """The clouds do not answer: the server goes on with the clients that it has, and can make none."""
    names = sorted(bench.world.backends)
    await bench.simulated.control("POST", "/clients", {"market": "dstack", "names": names})


async def test_looks_keep_the_servers_client_so_that_it_can_end_a_machine_of_a_cloud_that_makes_no_new_one() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await looked(bench, 60)
        await no_clients(bench)
        await looked(bench, 900)
        await stop(bench, run_id)
        await looked(bench, 240)
        assert [row.bills_gpu for row in await listed(bench)] == [False]
        assert (await bench.simulated.truth())["billing_now"] == []


@pytest.mark.parametrize("is_restarted", [True, False])
async def test_a_machine_that_the_server_could_not_end_without_a_client_goes_on_counting(is_restarted: bool) -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        await looked(bench, 60)
        if is_restarted:
            bench.world.clients = CloudClients(random.Random(1), 0.0)
        else:
            await bench.simulated.weather("server_error_before", route=f"POST {OF_PROJECT}/runs/get_plan", status=500)
            await looked(bench, 600)
        await no_clients(bench)
        await stop(bench, run_id)
        await looked(bench, 240)
        (left,) = await listed(bench)
        assert (left.state, left.bills_gpu, left.is_called_over) == (InstanceState.OFFLINE, True, True)
        assert "may have had no access to its cloud" in left.message
        await stop(bench, run_id)
        assert (await bench.simulated.truth())["billing_now"] == [run_id], "and it does bill"


async def test_a_question_that_is_not_answered_delays_no_release() -> None:
    async with dstack_bench() as bench:
        run_id = await bench.rent(await bench.offer())
        await bench.running(run_id)
        side = bench.simulated.simulator.sides["dstack"]
        answer, silence = side.answer, asyncio.Event()

        async def held(call: Any) -> Any:
            if call.path.endswith("/get_plan"):
                await silence.wait()
            return await answer(call)

        side.answer = held
        await bench.simulated.advance(90.0)
        await listed(bench)
        await stop(bench, run_id)
        assert bench.world.runs[run_id].status == "terminating"
        assert not silence.is_set()
        silence.set()


async def test_a_reader_of_a_public_project_who_is_no_member_is_shown_no_empty_listing() -> None:
    """The project's answer has every reader then, and lists of runs have nothing for this one: no kill is done."""
    async with dstack_bench() as bench:
        await bench.rent(await bench.offer())
        await bench.simulated.weather("revoked_key", route="POST /api/project/main/runs/get_plan")
        await bench.simulated.weather("empty_list", route="POST /api/runs/list")
        with pytest.raises(market_errors.Unauthorized):
            await bench.market.instances()
