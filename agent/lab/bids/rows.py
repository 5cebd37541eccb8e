"""The simulated market's rows as our nouns. The adapter reads the same rows from the same market over HTTP.

Invariants:
1. A row here equals the adapter's own row of the same contract, offer or notice at the same instant. A test compares
   the two.
"""

import math
from datetime import UTC, datetime

from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import MICROS, UsdPerHour
from agent.simulator.instances import program
from agent.simulator.instances.container_state import Container
from agent.simulator.vast.model import Contract, Notice, NoticeKind, Slice
from agent.simulator.vast.world import World

SHOWN = {
    NoticeKind.STARTED: MarketEventKind.STARTED,
    NoticeKind.RESUMED: MarketEventKind.RESUMED,
    NoticeKind.OUTBID: MarketEventKind.OUTBID,
}
"""The notices that the inbox shows by default."""
_LATEST = datetime(2060, 1, 1, tzinfo=UTC).timestamp()
"""Hosts without an end date have a date beyond this."""
_ROUNDING = 1e-6
_BOOTING = frozenset({Container.NONE, Container.CREATED, Container.LOADING})
_HOLDING = {
    Container.NONE: InstanceState.PENDING,
    Container.LOADING: InstanceState.LOADING,
    Container.CREATED: InstanceState.LOADING,
    Container.REBOOTING: InstanceState.LOADING,
    Container.RECYCLING: InstanceState.LOADING,
    Container.RUNNING: InstanceState.RUNNING,
    Container.EXITED: InstanceState.EXITED,
}
_REMADE = frozenset({Container.REBOOTING, Container.RECYCLING})


def moment(seconds: float) -> datetime | None:
    """Return an instant, or None for a date so far away that it means no end."""
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < _LATEST else None


def offer(world: World, market: str, slice_: Slice, floor: float, ask: float | None) -> Offer:
    """Return a slice as an offer: with `floor` as the search quotes it, and the ask if that is known."""
    host = slice_.host
    return Offer(
        market,
        str(slice_.offer_id),
        str(slice_.machine_id),
        str(host.owner_id),
        gpu.model(host.gpu.name),
        slice_.num_gpus,
        host.gpu.vram_mb,
        host.dlperf_per_gpu * slice_.num_gpus,
        host.reliability,
        host.verification == "verified",
        host.geolocation,
        host.inet_down,
        host.inet_up,
        host.disk_gb * slice_.share,
        None if ask is None else UsdPerHour(int(ask * MICROS + 0.5)),
        UsdPerHour(math.ceil(floor * MICROS - _ROUNDING)),
        int(host.storage_price * MICROS + 0.5),
        int(host.down_price * MICROS + 0.5),
        int(host.up_price * MICROS + 0.5),
        moment(host.end_time),
        datetime.fromtimestamp(world.now, UTC),
        is_datacenter=host.is_datacenter,
    )


def instance(world: World, market: str, contract: Contract) -> Instance:
    """Return a contract as an instance."""
    host = contract.host
    is_running = contract.container is Container.RUNNING and contract.holds_gpu
    return Instance(
        market=market,
        instance_id=str(contract.contract_id),
        label=contract.label or "",
        host_id=str(host.machine_id),
        owner_id=str(host.owner_id),
        tenure=Tenure.INTERRUPTIBLE if contract.is_bid else Tenure.ON_DEMAND,
        state=state(contract),
        gpu=gpu.model(host.gpu.name),
        gpus=contract.slice.num_gpus,
        gpu_rate=money.per_hour(world.gpu_rate(contract)),
        disk_rate=money.per_hour(world.disk_rate(contract)),
        disk_gb=contract.disk_gb,
        created_at=moment(contract.created),
        ends_at=moment(contract.end_time),
        floor=money.per_hour_up(world.host_floor(contract.slice)),
        dlperf=host.dlperf_per_gpu * contract.slice.num_gpus,
        reliability=host.reliability,
        inet_down_mbps=host.inet_down,
        traffic_down_gb=contract.down_gb,
        traffic_up_gb=contract.up_gb,
        traffic_down_micros_per_gb=round(host.down_price * MICROS),
        traffic_up_micros_per_gb=round(host.up_price * MICROS),
        is_wanted_running=contract.is_intended,
        message=contract.pull_error or "",
        has_trouble=contract.pull_error is not None,
        may_bill_gpu=contract.holds_gpu and (contract.is_unknown or contract.container in _REMADE),
        gpu_util=program.gpu_use(contract, world.now) if is_running else None,
    )


def state(contract: Contract) -> InstanceState:
    """Return the state of a contract, from the market's own fields."""
    if contract.is_unknown:
        return InstanceState.OFFLINE if contract.holds_gpu else InstanceState.PAUSED
    if contract.is_offline:
        return InstanceState.OFFLINE
    container = contract.container
    if contract.holds_gpu:
        return _HOLDING[container]
    if container in _BOOTING:
        return InstanceState.PAUSED if contract.pull_error is None else InstanceState.FAILED
    return InstanceState.PAUSED if container is Container.EXITED else InstanceState.UNKNOWN


def event(market: str, notice: Notice) -> MarketEvent:
    """Return a notice of the inbox as evidence. Its prices are in whole cents."""
    is_outbid = notice.kind is NoticeKind.OUTBID
    return MarketEvent(
        event_id=notice.event_id,
        market=market,
        kind=SHOWN[notice.kind],
        instance_id="" if notice.contract_id is None else str(notice.contract_id),
        at=datetime.fromtimestamp(notice.at, UTC),
        your_bid=money.per_hour(round(notice.price or 0.0, 2)) if is_outbid else None,
        new_floor=money.per_hour(round(notice.new_floor or 0.0, 2)) if is_outbid else None,
    )
