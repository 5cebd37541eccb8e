"""The offers of large plans: the server lists the cheapest first, and cuts."""

import dataclasses

import pytest
from structlog.testing import capture_logs

from agent.domain.market import gpu
from agent.domain.market.gpu import GpuModel
from agent.markets.dstack import names
from agent.simulator.dstack.model import Kind
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
