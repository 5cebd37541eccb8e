"""The offers of large plans: the server lists the cheapest first, and cuts."""

import dataclasses

import pytest
from structlog.testing import capture_logs

from agent.domain.market import gpu
from agent.domain.market.gpu import GpuModel
from agent.domain.work.workload import Requirements
from agent.markets import port
from agent.markets.dstack import market as dstack
from agent.markets.dstack import names, orders
from agent.simulator.dstack import world as server
from agent.simulator.dstack.model import Kind
from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.markets.bench_dstack import ServerBench, dstack_bench

CHEAP = Kind("aws", "us-east-1", "l4-1x", "L4", 24, 1, 80)
DEAR = Kind("aws", "us-east-1", "h100-1x", "H100", 80, 1, 1_230)


def stock(bench: ServerBench, cheap: int, of: Kind = CHEAP) -> None:
    """Let the clouds have so many cheap types, and one dear one."""
    types = [dataclasses.replace(of, name=f"{of.name}-{number}") for number in range(cheap)]
    bench.world.kinds = [*types, DEAR]


async def wanted(bench: ServerBench, *models: str) -> list[str]:
    found = await bench.offers(gpu_models=tuple(map(gpu.model, models)))
    return [str(offer.gpu) for offer in found if offer.gpu == "H100"]


async def test_a_dear_card_behind_many_cheap_ones_of_its_size_is_found() -> None:
    async with dstack_bench() as bench:
        stock(bench, 900, dataclasses.replace(CHEAP, gpu="A100", memory_gb=80))
        assert await wanted(bench, "H100") == ["H100"]


async def test_cards_that_are_too_small_for_every_model_are_not_asked_for() -> None:
    async with dstack_bench() as bench:
        stock(bench, 10_100)
        with capture_logs() as logs:
            assert await wanted(bench, "H100") == ["H100"]
        assert [line for line in logs if line["event"] == "plan.cut"] == []


async def test_a_plan_that_is_cut_is_said_with_the_way_to_see_more() -> None:
    async with dstack_bench() as bench:
        stock(bench, 10_100)
        with capture_logs() as logs:
            assert await bench.offers()
        (line,) = [line for line in logs if line["event"] == "plan.cut"]
        assert (line["rows"], line["beyond"]) == (10_000, 101)
        assert "name fewer clouds or regions in [markets.dstack]" in line["fix"]


async def test_cheap_spot_pools_do_not_hide_the_machines_on_demand() -> None:
    async with dstack_bench() as bench:
        spot = [
            dataclasses.replace(CHEAP, name=f"l4-{number}", cents=30 + number, is_spot=True) for number in range(40)
        ]
        bench.world.kinds = [*spot, CHEAP, dataclasses.replace(CHEAP, backend="cloudrift", region="eu", cents=90)]
        query = port.OfferQuery(Requirements(verified_only=False), 10.0, max_rows=16)
        found = await bench.market.offers(query)
        assert [offer.ask is None for offer in found] == [True] * 16 + [False] * 2


N1 = Kind("gcp", "us-central1", "n1-standard-8", "T4", 16, 1, 73)


async def test_two_cards_on_one_type_of_machine_are_two_pools_and_the_ordered_one_is_rented() -> None:
    async with dstack_bench() as bench:
        bench.world.kinds = [N1, dataclasses.replace(N1, gpu="V100", cents=286)]
        bench.world.backends = ["gcp"]
        url = bench.simulated.simulator.url("dstack")
        terrain = dstack.Terrain("main", server.FLEET, orders.Bounds(("gcp",)))
        bench.market = dstack.connect(url, lambda: DEFAULT_KEY, bench.clock, lambda: 0.5, terrain=terrain)
        assert {(offer.gpu, offer.host_id) for offer in await bench.offers(gpu_models=())} == {
            ("T4", "pool/gcp/us-central1/n1-standard-8/T4"),
            ("V100", "pool/gcp/us-central1/n1-standard-8/V100"),
        }
        (offer,) = await bench.offers(gpu_models=(GpuModel("V100"),))
        run_id = await bench.rent(offer)
        waiting = await bench.market.instance(run_id)
        assert waiting.host_id == offer.host_id
        running = await bench.running(run_id)
        assert (running.gpu, running.host_id, running.gpu_rate) == ("V100", offer.host_id, offer.ask)
        await bench.market.close()


@pytest.mark.parametrize("is_spot", [False, True])
@pytest.mark.parametrize(("cloud", "kind"), [("aws", "g5.xlarge"), ("gcp", "n1-standard-8"), ("gcp", "a2-highgpu-1g")])
def test_a_pool_is_read_back_from_its_id(cloud: str, kind: str, *, is_spot: bool) -> None:
    pool = names.pool_of(cloud, "us-central1", kind, "A100", is_spot=is_spot)
    assert pool is not None
    assert names.pool(pool.host_id) == pool
    assert bool(pool.card) is kind.startswith("n1-")


@pytest.mark.parametrize(
    "host_id",
    [
        "pool/gcp/us/n1-standard-8",
        "pool/aws/us/g5.xlarge/A10G",
        "pool/aws/us",
        "pool/aws/us/g5.xlarge/A10G/x/spot",
        "7",
    ],
)
def test_an_id_that_names_no_pool_is_none(host_id: str) -> None:
    assert names.pool(host_id) is None


@pytest.mark.parametrize(
    ("models", "least"),
    [
        ((), 0),
        (("H100", "unheard of"), 0),
        (("H100", "L4"), 11_059),
        (("A100",), 36_864),
        (("V100",), 14_746),
    ],
    ids=str,
)
def test_the_least_memory_is_that_of_the_smallest_card_of_any_model(models: tuple[str, ...], least: int) -> None:
    assert names.least_memory_mb(tuple(map(GpuModel, models))) == least
