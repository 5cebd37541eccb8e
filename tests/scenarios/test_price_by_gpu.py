"""A workload whose models have prices of their own: the questions to the market, and the rents."""

from pathlib import Path

import pytest

from agent.domain import money
from agent.domain.market import gpu
from agent.domain.work.workload import Requirements
from agent.observe import search_questions
from tests.support.world import rehearsed, work

CHEAP, DEAR = money.per_hour("0.0001"), money.per_hour("0.6")
SLOW, FAST = gpu.model("RTX 3090"), gpu.model("RTX 4090")


@pytest.mark.parametrize(("rich", "poor"), [(FAST, SLOW), (SLOW, FAST)])
async def test_only_the_model_whose_price_suffices_is_rented(tmp_path: Path, rich: str, poor: str) -> None:
    own = ((gpu.model(rich), DEAR), (gpu.model(poor), CHEAP))
    async with rehearsed(tmp_path, hosts=90, workloads=(work(max_price_by_gpu=own),)) as world:
        await world.until_running()
        assert world.lease().gpu == rich


def test_models_of_equal_price_share_a_question_and_all_share_the_rows() -> None:
    own = ((FAST, DEAR), (SLOW, CHEAP))
    asked = search_questions.of(work(max_price_by_gpu=own), (), 16)
    assert [(each.gpu_models, each.max_price, each.max_rows) for each in asked] == [
        ((FAST,), DEAR, 8),
        ((SLOW,), CHEAP, 8),
    ]
    (plain,) = search_questions.of(work(), (), 16)
    assert (plain.gpu_models, plain.max_price, plain.max_rows) == ((FAST, SLOW), DEAR, 16)
    anything = work(max_price_by_gpu=own, requirements=Requirements(verified_only=False))
    assert [(each.gpu_models, each.max_price, each.max_rows) for each in search_questions.of(anything, (), 16)] == [
        ((FAST,), DEAR, 5),
        ((SLOW,), CHEAP, 5),
        ((), work().max_price, 5),
    ]
    (held,) = search_questions.of(anything, ("h1",), 16)
    assert (held.gpu_models, held.max_price, held.max_rows, held.host_ids) == ((), DEAR, 16, ("h1",))
