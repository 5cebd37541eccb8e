"""The types of instance, the pools, and their prices now and in the past."""

from typing import Any

from agent.simulator.api_calls import Reply
from agent.simulator.mithril import models, prices
from agent.simulator.mithril.http import calls
from agent.simulator.mithril.http.calls import Call
from agent.simulator.mithril.http.surface import Surface
from agent.simulator.mithril.model import Refused
from agent.simulator.mithril.models import InstanceType
from agent.simulator.mithril.pool_auction import PoolAuction

_DAY = 86_400.0


def types(surface: Surface, _: Call) -> Reply:
    """Answer GET /v2/instance-types."""
    reserved = {pool.pool.kind.fid: pool.pool.reserved_cents / 100.0 for pool in surface.world.pools.values()}
    return calls.ok([_type(kind, reserved[kind.fid]) for kind in models.TYPES])


def processor_types(_: Surface, _call: Call) -> Reply:
    """Answer GET /v2/cpu/instance-types: machines without GPUs are not simulated."""
    return calls.ok([])


def availability(surface: Surface, _: Call) -> Reply:
    """Answer GET /v2/spot/availability."""
    return calls.ok([_auction(surface, pool) for pool in surface.world.pools.values()])


def current(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/pricing/current. Without a region, answer the lowest price of all pools."""
    quantity = call.number("instance_quantity", 1, 256, 1)
    told = surface.world.told(_pool(surface, call), quantity)
    return calls.ok(
        {
            "spot_price_cents": told.spot,
            "reserved_price_cents": told.reserved,
            "minimum_price_cents": told.minimum,
            "lowest_allocated_bid_cents": told.lowest_allocated,
            "dynamic_win_price_cents": told.price_to_win,
            "available_capacity": told.free,
            "total_capacity": told.total,
        }
    )


def history(surface: Surface, call: Call) -> Reply:
    """Answer GET /v2/pricing/history."""
    samples, now = call.number("num_samples", -1, 1000, 100), surface.world.now
    since, until = call.instant("start_time", now - _DAY), min(call.instant("end_time", now), now)
    since = max(since, surface.world.start_time)
    kinds, region = call.words("instance_types"), call.query.get("region")
    series = [
        _series(pool, prices.sampled(pool, since, until, samples))
        for (kind, place), pool in surface.world.pools.items()
        if (not kinds or kind in kinds) and region in (None, "", place)
    ]
    return calls.ok({"series": series, "complete": True, "show_disabled_regions": False})


def _pool(surface: Surface, call: Call) -> PoolAuction:
    kind, region = call.required("instance_type"), call.query.get("region")
    if "no_price" in call.struck:
        raise Refused(404, "No current price for this instance type")
    if region:
        return surface.world.pool(kind, region)
    pools = [pool for (fid, _), pool in surface.world.pools.items() if fid == kind]
    if not pools:
        raise Refused(404, "No current price for this instance type")
    return min(pools, key=lambda pool: pool.spot_cents)


def _type(kind: InstanceType, dollars: float) -> dict[str, Any]:
    return {
        "fid": kind.fid,
        "name": kind.name,
        "num_cpus": kind.cpus,
        "cpu_type": "Intel",
        "ram_gb": kind.ram_gb,
        "num_gpus": kind.gpu_count,
        "gpu_type": kind.gpu_type,
        "gpu_memory_gb": kind.gpu_memory_gb,
        "gpu_socket": kind.socket,
        "local_storage_gb": kind.local_gb,
        "network_type": "InfiniBand" if kind.infiniband else None,
        "ib_count": kind.infiniband,
        "bridge_count": 0,
        "hourly_price": dollars,
    }


def _auction(surface: Surface, pool: PoolAuction) -> dict[str, Any]:
    told = surface.world.told(pool)
    return {
        "fid": pool.pool.fid,
        "instance_type": pool.pool.kind.fid,
        "region": pool.pool.region,
        "capacity": told.free,
        "last_instance_price": calls.dollars(told.spot),
        "lowest_allocated_price": None if told.lowest_allocated is None else calls.dollars(told.lowest_allocated),
        "adjustable_memory": False,
        "default_image_version": None,
    }


def _series(pool: PoolAuction, points: list[tuple[float, int]]) -> dict[str, Any]:
    return {
        "instance_type": pool.pool.kind.fid,
        "region": pool.pool.region,
        "timestamps": [calls.stamp(at) for at, _ in points],
        "spot_prices": [calls.dollars(cents) for _, cents in points],
        "reserved_prices": [calls.dollars(pool.pool.reserved_cents) for _ in points],
        "region_disabled": False,
    }
