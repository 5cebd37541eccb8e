"""The simulated pools and bids as our nouns. The adapter reads the same of the same market over HTTP.

Invariants:
1. A row here equals the adapter's own row of the same bid or pool, except that prices here are never old. A test
   compares the two.
"""

from datetime import UTC, datetime, timedelta

from agent.domain import card_benchmarks, money
from agent.domain.market import card_memory, gpu
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import POOL
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.market.market_rules import MarketRules, Places, PricePaid, Settlement
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE, UsdPerHour
from agent.simulator.mithril.model import Bid, Event, Happening, Status
from agent.simulator.mithril.places import Pool
from agent.simulator.mithril.prices import Told
from agent.simulator.mithril.vms import BOOTING, VmStatus

MARKET = "mithril"
AUCTION_SECONDS = 120.0
RULES = MarketRules(
    places=Places.POOLS,
    price_paid=PricePaid.SECOND_PRICE,
    auction_every=timedelta(seconds=AUCTION_SECONDS),
    notice=timedelta(minutes=5),
    settlement=Settlement.ARREARS,
    sells_on_demand=False,
    shows_container=False,
)
RELIABILITY = 0.995
INET_MBPS = 1000.0
HUGE_GB = 1_000_000
"""The size of a boot disk is not reported."""
_MODELS = {"A100": "A100 SXM4", "H100": "H100 SXM"}
_KINDS = {
    Happening.ALLOCATED: MarketEventKind.STARTED,
    Happening.PREEMPTED: MarketEventKind.BID_LOST,
    Happening.PAUSED: MarketEventKind.STOPPED,
    Happening.TERMINATED: MarketEventKind.STOPPED,
}
_HELD = frozenset({Status.ALLOCATED, Status.PREEMPTING})


def model(pool: Pool) -> GpuModel:
    """Return the GPU of a pool."""
    return gpu.model(_MODELS.get(pool.kind.gpu_type, pool.kind.gpu_type))


def dlperf(pool: Pool) -> float:
    """Return the benchmark of a machine of a pool."""
    return card_benchmarks.dlperf(model(pool)) * pool.kind.gpu_count


def host_id(pool: Pool) -> str:
    """Return a pool as a host's id."""
    return f"{POOL}{pool.region}/{pool.kind.fid}"


def offer_id(pool: Pool) -> str:
    """Return the id of a pool's one offer."""
    return f"{pool.kind.fid}@{pool.region}"


def cents(rate: int) -> UsdPerHour:
    """Return the rate of whole cents per hour."""
    return UsdPerHour(rate * (money.MICROS // 100))


def to_win(told: Told) -> UsdPerHour | None:
    """Return the lowest bid that would win at the next auction, or None: nobody can say."""
    named = told.price_to_win
    if named is None and told.lowest_allocated is not None:
        named = told.lowest_allocated + 1
    if named is None and told.free >= 1:
        named = told.spot
    return None if named is None else cents(max(named, told.minimum))


def offer(pool: Pool, told: Told, now: float) -> Offer:
    """Return one machine of a pool as an offer."""
    card, floor = model(pool), to_win(told)
    country = pool.region.split("-")[0]
    sizes = [size for size in (pool.kind.gpu_memory_gb, card_memory.GIGABYTES.get(card)) if size is not None]
    return Offer(
        market=MARKET,
        offer_id=offer_id(pool),
        host_id=host_id(pool),
        owner_id="",
        gpu=card,
        gpus=pool.kind.gpu_count,
        vram_mb=int(min(sizes) * 1024),
        dlperf=dlperf(pool),
        reliability=RELIABILITY,
        is_verified=True,
        region=f"{pool.region}, US" if country == "us" else pool.region,
        inet_down_mbps=INET_MBPS,
        inet_up_mbps=INET_MBPS,
        disk_gb=HUGE_GB,
        ask=None,
        floor=floor,
        storage_micros_per_gb_month=0,
        traffic_down_micros_per_gb=0,
        traffic_up_micros_per_gb=0,
        ends_at=None,
        seen_at=datetime.fromtimestamp(now, UTC),
        is_price_unknown=floor is None,
        is_datacenter=True,
        price_paid=cents(told.spot),
    )


def instance(bid: Bid, spot_cents: int, disk_gb: float) -> Instance:
    """Return a bid as an instance.

    One that waits pays nothing. Its price is the last one that it paid, or that of its pool, and at most its limit.
    """
    is_held, limit = bid.status in _HELD, cents(bid.limit_cents)
    paid = cents(bid.vms[-1].prices[-1].cents if bid.vms else spot_cents)
    notice = None if bid.notice_at is None else datetime.fromtimestamp(bid.notice_at, UTC) + RULES.notice
    return Instance(
        market=MARKET,
        instance_id=bid.fid,
        label=bid.label or "",
        host_id=host_id(bid.pool),
        owner_id="",
        tenure=Tenure.INTERRUPTIBLE,
        state=state(bid),
        gpu=model(bid.pool),
        gpus=bid.pool.kind.gpu_count * bid.quantity,
        gpu_rate=paid if is_held else min(paid, limit),
        disk_rate=FREE,
        disk_gb=disk_gb,
        created_at=datetime.fromtimestamp(bid.created, UTC),
        ends_at=None,
        dlperf=dlperf(bid.pool),
        reliability=RELIABILITY,
        inet_down_mbps=INET_MBPS,
        is_wanted_running=bid.status is not Status.PAUSED,
        has_trouble=state(bid) is InstanceState.FAILED,
        may_bill_gpu=is_held,
        limit=limit,
        notice_at=notice,
        price_since=_price_since(bid),
    )


def _price_since(bid: Bid) -> datetime | None:
    """Return since when a bid pays its present price, in UTC; None if it pays none."""
    if not bid.vms or bid.vms[-1].prices[-1].end is not None:
        return None
    return datetime.fromtimestamp(bid.vms[-1].prices[-1].start, UTC)


def state(bid: Bid) -> InstanceState:
    """Return the state of a bid with its newest machine."""
    if bid.status is Status.PAUSED:
        return InstanceState.PAUSED
    if bid.status is Status.OPEN:
        return InstanceState.PAUSED if bid.vms else InstanceState.PENDING
    machine = bid.vms[-1].status
    if machine is VmStatus.ERROR:
        return InstanceState.FAILED
    return InstanceState.LOADING if machine in {*BOOTING, VmStatus.PAUSED} else InstanceState.RUNNING


def event(bid: Bid, happened: Event) -> MarketEvent | None:
    """Return a line of a bid's history as evidence; None for one that changes nothing that runs."""
    kind = _KINDS.get(happened.kind)
    if kind is None:
        return None
    at = datetime.fromtimestamp(happened.at, UTC)
    name = f"{bid.fid}@{happened.at:.3f}/{kind.value}"
    return MarketEvent(name, MARKET, kind, bid.fid, at, your_bid=cents(happened.limit_cents))
