"""What befalls pools between two cycles: other renters come with their limits, and reservations take capacity."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from agent.simulator.mithril.model import Bid, Terms
from agent.simulator.mithril.pool_auction import PoolAuction
from agent.simulator.mithril.world import World
from tests.disasters.edits import pick
from tests.disasters.story import Deed

if TYPE_CHECKING:
    from tests.disasters.play import Player

FAR_ABOVE = 5
"""Times the reserved price: nobody of ours bids that."""


async def _taken(deed: Deed, player: "Player") -> None:
    """Somebody takes a whole pool for a while: all who hold it are given notice."""
    pool = _pool(deed, player)
    _invite(deed, player, pool, FAR_ABOVE * pool.pool.reserved_cents, pool.pool.total)


async def _rival(deed: Deed, player: "Player") -> None:
    """Somebody bids for more than is free, at about what wins now: it may win, or lose and set the price."""
    pool = _pool(deed, player)
    limits = sorted(bidder.limit_cents for bidder in pool.bidders()) or [pool.spot_cents]
    limit = max(round(limits[deed.pick % len(limits)] * (0.8 + 0.6 * deed.amount)), pool.pool.minimum_cents)
    _invite(deed, player, pool, limit, min(pool.free + 1 + deed.pick % 3, pool.pool.total))


async def _reserved(deed: Deed, player: "Player") -> None:
    """A reservation takes capacity out of the auction for a while."""
    pool = _pool(deed, player)
    quantity = max(round(pool.capacity * (0.3 + 0.7 * deed.amount)), 0)
    pool.reserve(quantity)
    player.later(player.stage.clock.time() + 300.0 + 5400.0 * deed.amount, lambda: pool.reserve(-quantity))


def by_hand(world: World, limit_cents: int = 10_000) -> str:
    """Let a person bid in the same account; return the id of that bid."""
    pool = max(world.pools.values(), key=lambda each: each.free)
    terms = Terms(f"by-hand-{len(world.bids)}", world.project, pool.pool, limit_cents, 1)
    return world.desk.place(terms).fid


def _pool(deed: Deed, player: "Player") -> PoolAuction:
    """Return a pool in which we bid, or else one of single GPUs."""
    world = player.stage.simulator.mithril.world
    ours = [box.thing.pool for box in player.truth.live if isinstance(box.thing, Bid)]
    pools = [pool for pool in world.pools.values() if pool.pool in ours]
    found: PoolAuction = pick(
        pools or [pool for pool in world.pools.values() if pool.pool.kind.gpu_count == 1], deed.pick
    )
    return found


def _invite(deed: Deed, player: "Player", pool: PoolAuction, cents: int, quantity: int) -> None:
    world = player.stage.simulator.mithril.world
    rival = world.add_rival(pool.pool.fid, cents, quantity)
    player.rivals.append((world, rival, player.stage.clock.time() + 180.0 + 5400.0 * deed.amount))


DEEDS: Mapping[str, Callable[[Deed, "Player"], Awaitable[None]]] = {
    "pool_taken": _taken,
    "pool_rival": _rival,
    "pool_reserved": _reserved,
}
