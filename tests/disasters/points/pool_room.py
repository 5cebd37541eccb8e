"""Room on the market of auctions: a pool with capacity whose price to win is known and well within a value."""

from agent.domain.market import gpu
from agent.domain.work.workload import Workload
from agent.markets import card_benchmarks
from agent.simulator.mithril.pool_auction import PoolAuction
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
    return work.strategy in OF_VALUE and any(_is_won(world, pool, work) for pool in world.pools.values())


def _is_won(world: World, pool: PoolAuction, work: Workload) -> bool:
    kind = pool.pool.kind
    model = MODELS.get(kind.gpu_type)
    if kind.gpu_count != 1 or model not in work.requirements.gpu_models or pool.free < 1:
        return False
    true = pool.price_to_win(1)
    told = world.told(pool)
    shown = told.price_to_win or max(told.spot, told.minimum)
    return true is not None and max(true, shown) / 100 * ROOM < work.max_price.dollars
