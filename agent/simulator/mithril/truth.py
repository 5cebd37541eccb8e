"""The true state of this market, for tests and the control API."""

from typing import Any

from agent.simulator.mithril.model import Bid
from agent.simulator.mithril.pool_auction import PoolAuction
from agent.simulator.mithril.vms import Vm
from agent.simulator.mithril.world import World


def as_json(world: World) -> dict[str, Any]:
    """Return the whole truth in JSON shapes, bids in the words of the other markets' contracts."""
    total = world.charged_total()
    return {
        "now": world.now,
        "credit": None,
        "project": world.project,
        "contracts": [_bid(bid) for bid in world.bids.values()],
        "billing_now": [bid.fid for bid in world.live_contracts() if bid.rate > 0.0],
        "charged_total": total,
        "charged_volumes": world.belongings.cost(world.now),
        "pools": [_pool(pool) for pool in world.pools.values()],
    }


def _bid(bid: Bid) -> dict[str, Any]:
    return {
        "id": bid.fid,
        "number": bid.contract_id,
        "label": bid.label,
        "machine_id": bid.host.machine_id,
        "gpu": bid.pool.kind.gpu_type,
        "num_gpus": bid.pool.kind.gpu_count * bid.quantity,
        "region": bid.pool.region,
        "is_bid": True,
        "bid": bid.limit_cents / 100.0,
        "price": bid.rate,
        "status": bid.status.value,
        "container": bid.container.value,
        "notice_at": bid.notice_at,
        "created": bid.created,
        "started": bid.first_started,
        "ended": bid.ended,
        "end_cause": bid.end_cause,
        "charged": dict(bid.charged),
        "instances": [_vm(vm) for vm in bid.vms],
    }


def _vm(vm: Vm) -> dict[str, Any]:
    return {
        "id": vm.fid,
        "status": vm.status.value,
        "statuses": [[at, status.value] for at, status in vm.statuses],
        "prices": [[period.cents, period.start, period.end] for period in vm.prices],
    }


def _pool(pool: PoolAuction) -> dict[str, Any]:
    return {
        "id": pool.pool.fid,
        "instance_type": pool.pool.kind.fid,
        "region": pool.pool.region,
        "total": pool.pool.total,
        "reserved": pool.reserved,
        "free": pool.free,
        "spot_cents": pool.spot_cents,
        "lowest_cents": pool.lowest_cents,
        "limits": sorted(bidder.limit_cents for bidder in pool.bidders()),
    }
