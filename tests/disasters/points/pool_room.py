"""Room on the market of auctions: a pool with capacity whose price to win is known and well within a value."""

from collections.abc import Iterator

from agent.domain import card_benchmarks
from agent.domain.market import gpu
from agent.domain.work.workload import Workload
from agent.simulator.mithril.world import World
from tests.disasters.points.room import ROOM

MODELS = {"A100": gpu.model("A100 SXM4"), "B200": gpu.model("B200")}
OF_VALUE = frozenset({"patient"})
"""Strategies that bid in any pool that is worth it. The others weigh markets, hosts and time against each other."""


def fastest(work: Workload) -> float:
    """Return the DLPerf of the fastest model that is sold to a workload, by which its strategy weighs every other."""
    return max(
        (card_benchmarks.dlperf(model) for model in work.requirements.gpu_models if model in MODELS.values()),
        default=0.0,
    )


def is_enough(world: World, work: Workload) -> bool:
    """Return whether a slot that can run must run."""
    is_paid = any(price * ROOM < work.max_price.dollars for price in prices(world, work))
    return work.strategy in OF_VALUE and is_paid


def prices(world: World, work: Workload) -> Iterator[float]:
    """Yield the dollars an hour that win in each pool with capacity for one more slot, in truth and as it is shown."""
    for pool in world.pools.values():
        kind = pool.pool.kind
        is_wanted = kind.gpu_count == 1 and MODELS.get(kind.gpu_type) in work.requirements.gpu_models
        true = pool.price_to_win(1) if is_wanted and pool.free >= 1 else None
        if true is not None:
            told = world.told(pool)
            yield max(true, told.price_to_win or max(told.spot, told.minimum)) / 100
