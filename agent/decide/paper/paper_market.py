"""Paper instances: a position on offers that a search really saw, without renting.

Nobody knows what would have happened. These rules are the whole guess, and every figure from them is named a guess:
1. A rent on a seen offer, at a bid of at least its floor, loads at once. It runs after the time that our own recent
   starts took on that market; without any, after the time that the host's advertised line needs for the image.
2. It pays its own bid, or on demand its ask, as the market bills, and its traffic once it runs.
3. It is outbid when a floor above its bid is seen on its slice, and starts again when one not above it is seen.
4. If a lease of ours bids on the same host, the floor there is our own bid and proves nothing. The paper lease is lost
   with ours, unless the rival is known to have bid no more than the paper lease, and it comes back with ours.
5. A host that is not seen stays as it was: no failed host and no failed start is assumed.
"""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from agent.decide.pricing import useful_hour
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.gpu import GpuModel
from agent.domain.market.host import HostKey, is_pool
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Rent
from agent.domain.work.workload import Workload

RULES = (
    "nothing was rented: these are figures of a paper position on offers that were really seen",
    "a rent at the floor or above it runs after the time of our own starts there, or that the host's line needs",
    "it pays its own bid, is lost when a floor above it is seen, and comes back when one not above it is seen",
    "on a host where our own lease bids, it is lost with that lease; no failure of a host is assumed",
    "it sees offers only when the live strategy searches for them, so it may wait longer than it would have alone",
    "budgets and credit do not bind it; an hour of a deadline's work is a useful hour",
)
"""The assumptions behind every paper figure, for people."""

RESUME = timedelta(seconds=60)
"""Time from winning again to running, with the image already on the disk. Assumed."""
EVENTS_KEPT = timedelta(hours=6)
HOLDS = frozenset({InstanceState.LOADING, InstanceState.RUNNING})
WAITS = frozenset({InstanceState.PAUSED, InstanceState.PENDING})


@dataclass(frozen=True, slots=True)
class PaperInstance:
    """One paper instance; `floor` is the last floor of its slice, seen at `seen_at`."""

    instance_id: str
    market: str
    host_id: str
    owner_id: str
    gpu: GpuModel
    gpus: int
    dlperf: float
    tenure: Tenure
    rate: UsdPerHour
    disk_rate: UsdPerHour
    disk_gb: float
    inet_down_mbps: float
    moved_gb: float
    traffic_micros_per_gb: int
    created_at: datetime
    ends_at: datetime | None
    state: InstanceState = InstanceState.LOADING
    ready_at: datetime | None = None
    is_wanted: bool = True
    has_run: bool = False
    seen_at: datetime | None = None
    floor: UsdPerHour | None = None
    limit: UsdPerHour | None = None
    """The bid where the price paid is not the bid; `rate` is then the last price that won."""
    starts_in: timedelta = RESUME
    """Time from winning to running."""

    @property
    def bid(self) -> UsdPerHour:
        """The bid, or the rate on demand."""
        return self.rate if self.limit is None else self.limit

    def at(self, price: UsdPerHour) -> "PaperInstance":
        """Return the instance at the price of an auction that it wins; elsewhere its bid is its price."""
        return self if self.limit is None or price > self.limit else replace(self, rate=price)


@dataclass(slots=True)
class PaperMarket:
    """All paper instances of one course of decisions, by id, and their events."""

    held: dict[str, PaperInstance] = field(default_factory=dict)
    events: list[MarketEvent] = field(default_factory=list)
    rents: int = 0

    def see(self, fleet: Fleet) -> None:
        """Advance to a fleet that was really seen: finish starts, and compare floors with bids."""
        for instance in list(self.held.values()):
            view = fleet.markets.get(instance.market)
            self.held[instance.instance_id] = self._seen(instance, view, fleet)
        since = fleet.now - EVENTS_KEPT
        self.events = [event for event in self.events if event.at >= since]

    def rows(self, view: MarketView) -> tuple[Instance, ...]:
        """Return the paper listing of a market."""
        bills = any(row.bills_while_loading for row in view.instances)
        return tuple(
            _row(instance, bills_while_loading=bills)
            for instance in self.held.values()
            if instance.market == view.market
        )

    def rent(self, decision: Rent, work: Workload, fleet: Fleet) -> str | None:
        """Return the id of a new instance; None if its bid is below the floor or the host is taken.

        A bid below the floor waits where the price paid is not the bid.
        """
        offer, bid = decision.offer, decision.bid
        is_taken = any(
            HostKey(other.market, other.host_id) == offer.host for other in self.held.values()
        ) and not is_pool(offer.host_id)
        is_below = bid is not None and (offer.floor is None or bid < offer.floor)
        if is_taken or (is_below and not decision.is_limit):
            return None
        self.rents += 1
        disk_rate = offer.disk_rate(work.disk_gb)
        takes = typical_start(fleet, offer.market, work, offer.inet_down_mbps)
        instance = PaperInstance(
            instance_id=f"paper-{self.rents}",
            market=offer.market,
            host_id=offer.host_id,
            owner_id=offer.owner_id,
            gpu=offer.gpu,
            gpus=offer.gpus,
            dlperf=offer.dlperf,
            tenure=decision.tenure,
            rate=decision.expected or decision.rate - disk_rate,
            limit=bid if decision.is_limit else None,
            disk_rate=disk_rate,
            disk_gb=work.disk_gb,
            inet_down_mbps=offer.inet_down_mbps,
            moved_gb=work.moved_gb,
            traffic_micros_per_gb=offer.traffic_down_micros_per_gb,
            created_at=fleet.now,
            ends_at=offer.ends_at,
            state=InstanceState.PENDING if is_below else InstanceState.LOADING,
            ready_at=None if is_below else fleet.now + takes,
            seen_at=offer.seen_at,
            floor=offer.floor,
            starts_in=takes if is_below else RESUME,
        )
        self.held[instance.instance_id] = instance
        return instance.instance_id

    def adopt(self, lease: Lease, work: Workload, now: datetime) -> str:
        """Return the id of an instance that begins in the present state of a real lease of ours."""
        self.rents += 1
        runs = lease.state is LeaseState.RUNNING
        is_starting = lease.state is LeaseState.STARTING
        state = InstanceState.RUNNING if runs else InstanceState.LOADING if is_starting else InstanceState.PAUSED
        instance = PaperInstance(
            instance_id=f"paper-{self.rents}",
            market=lease.market,
            host_id=lease.host_id,
            owner_id=lease.owner_id,
            gpu=lease.gpu,
            gpus=lease.gpus,
            dlperf=lease.dlperf,
            tenure=lease.tenure,
            rate=lease.gpu_rate,
            limit=lease.bid_limit,
            disk_rate=lease.disk_rate,
            disk_gb=lease.disk_gb,
            inet_down_mbps=0.0,
            moved_gb=0.0 if lease.has_run else work.moved_gb,
            traffic_micros_per_gb=0,
            created_at=lease.opened_at,
            ends_at=lease.ends_at,
            state=state,
            ready_at=now + RESUME if is_starting else None,
            is_wanted=not lease.paused_by_us,
            has_run=lease.has_run,
        )
        self.held[instance.instance_id] = instance
        return instance.instance_id

    def rebid(self, instance_id: str, bid: UsdPerHour, now: datetime) -> None:
        """Change a bid; a lost instance wins if it now meets the last floor."""
        instance = self.held[instance_id]
        changed = replace(instance, rate=bid) if instance.limit is None else replace(instance, limit=bid)
        self.held[instance_id] = _won(changed, now)

    def resume(self, instance_id: str, now: datetime) -> bool:
        """Start again; return whether it starts now by the known floor, or waits for its bid to win."""
        self.held[instance_id] = _won(replace(self.held[instance_id], is_wanted=True), now)
        return self.held[instance_id].state in HOLDS

    def pause(self, instance_id: str) -> None:
        """Stop, keep the disk, cancel a queued start."""
        stopped = replace(self.held[instance_id], state=InstanceState.PAUSED, ready_at=None, is_wanted=False)
        self.held[instance_id] = stopped

    def release(self, instance_id: str) -> None:
        """End for good."""
        self.held.pop(instance_id, None)

    def _seen(self, instance: PaperInstance, view: MarketView | None, fleet: Fleet) -> PaperInstance:
        if instance.state is InstanceState.LOADING and instance.ready_at is not None and instance.ready_at <= fleet.now:
            self._add_event(instance, MarketEventKind.STARTED, instance.ready_at)
            instance = replace(instance, state=InstanceState.RUNNING, ready_at=None, has_run=True)
        if instance.ends_at is not None and instance.ends_at <= fleet.now and instance.state in HOLDS:
            return replace(instance, state=InstanceState.PAUSED, ready_at=None, is_wanted=False)
        if instance.tenure is not Tenure.INTERRUPTIBLE or view is None or not view.is_fresh:
            return instance
        twin = _twin(instance, fleet)
        return self._as_twin(instance, twin, fleet.now) if twin is not None else self._as_floor(instance, fleet)

    def _as_floor(self, instance: PaperInstance, fleet: Fleet) -> PaperInstance:
        floor = _floor(instance, fleet)
        if floor is None:
            return instance
        instance = replace(instance, floor=floor, seen_at=fleet.now).at(floor)
        return (
            self._lost(instance, fleet.now, floor)
            if instance.state in HOLDS and floor > instance.bid
            else _won(instance, fleet.now)
        )

    def _as_twin(self, instance: PaperInstance, twin: Lease, now: datetime) -> PaperInstance:
        is_lost = twin.state is LeaseState.PAUSED and not twin.paused_by_us and twin.interrupted_by is not None
        rival = twin.rival_floor
        if instance.state in HOLDS and is_lost and (rival is None or rival > instance.bid):
            return self._lost(instance, now, rival)
        if instance.state in WAITS and instance.is_wanted and twin.is_live and twin.gpu_rate <= instance.bid:
            return _started(instance.at(twin.gpu_rate), now)
        return instance.at(twin.gpu_rate)

    def _lost(self, instance: PaperInstance, now: datetime, floor: UsdPerHour | None) -> PaperInstance:
        self._add_event(instance, MarketEventKind.OUTBID, now, floor)
        return replace(instance, state=InstanceState.PAUSED, ready_at=None, floor=floor or instance.floor)

    def _add_event(
        self, instance: PaperInstance, kind: MarketEventKind, at: datetime, floor: UsdPerHour | None = None
    ) -> None:
        name = f"{instance.instance_id}/{at.isoformat()}/{kind}"
        self.events.append(MarketEvent(name, instance.market, kind, instance.instance_id, at, instance.bid, floor))


def typical_start(fleet: Fleet, market: str, work: Workload, inet_down_mbps: float) -> timedelta:
    """Return the time of a start: the median of our own recent ones on that market, else by the line's speed."""
    took = [start.seconds for start in fleet.starts if start.market == market]
    if took:
        return timedelta(seconds=statistics.median(took))
    return timedelta(hours=useful_hour.loading_hours(work.moved_gb, inet_down_mbps))


def _won(instance: PaperInstance, now: datetime) -> PaperInstance:
    """Return a paused instance, started again unless a known floor is above its bid."""
    is_met = instance.tenure is not Tenure.INTERRUPTIBLE or (
        instance.floor is not None and instance.floor <= instance.bid
    )
    return _started(instance, now) if instance.state in WAITS and instance.is_wanted and is_met else instance


def _started(instance: PaperInstance, now: datetime) -> PaperInstance:
    takes = RESUME if instance.has_run else instance.starts_in
    return replace(instance, state=InstanceState.LOADING, ready_at=now + takes)


def _twin(instance: PaperInstance, fleet: Fleet) -> Lease | None:
    """Return the real lease that bids on the same host, or None; its bid is the floor there."""
    return next(
        (
            lease
            for lease in fleet.leases
            if lease.host == HostKey(instance.market, instance.host_id)
            and lease.tenure is Tenure.INTERRUPTIBLE
            and lease.is_open
            and lease.state is not LeaseState.RELEASING
        ),
        None,
    )


def _floor(instance: PaperInstance, fleet: Fleet) -> UsdPerHour | None:
    """Return the lowest floor of its slice since the last comparison, or None."""
    view = fleet.markets.get(instance.market)
    rows: Iterable[tuple[datetime, UsdPerHour]] = (
        (row.seen_at, row.floor)
        for row in (view.offers_on(instance.host_id) if view is not None else ())
        if row.gpus == instance.gpus and row.gpu == instance.gpu and row.floor is not None
    )
    fresh = [floor for at, floor in rows if instance.seen_at is None or at > instance.seen_at]
    return min(fresh, default=None)


def _row(instance: PaperInstance, *, bills_while_loading: bool) -> Instance:
    return Instance(
        market=instance.market,
        instance_id=instance.instance_id,
        label="",
        host_id=instance.host_id,
        owner_id=instance.owner_id,
        tenure=instance.tenure,
        state=instance.state,
        gpu=instance.gpu,
        gpus=instance.gpus,
        gpu_rate=instance.rate,
        limit=instance.limit,
        disk_rate=instance.disk_rate,
        disk_gb=instance.disk_gb,
        created_at=instance.created_at,
        ends_at=instance.ends_at,
        dlperf=instance.dlperf,
        inet_down_mbps=instance.inet_down_mbps,
        traffic_down_gb=instance.moved_gb if instance.has_run else 0.0,
        traffic_down_micros_per_gb=instance.traffic_micros_per_gb,
        is_wanted_running=instance.is_wanted,
        bills_while_loading=bills_while_loading,
    )
