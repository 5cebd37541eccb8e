"""The Market port in memory: hosts of one pool on a course, with seeded start-up delays; no HTTP, no vendor.

On-demand is always available on a host without an instance of ours. Interruptible capacity is there for as many
instances as the course says. When it falls, the youngest are paused and keep their disks. They start again when it is
back.

Invariants:
1. Equal courses, seeds and calls give equal answers; there is no other randomness.
2. The n-th start on a host takes the same time under every strategy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from agent.domain.market.gpu import GpuModel
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.market.market_rules import ASSUMED, MarketRules
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE, Usd, UsdPerHour
from agent.lab.engine.lab_job import Job
from agent.lab.traces.course import Course, Delays
from agent.markets import market_errors, port

HOLDS = frozenset({InstanceState.LOADING, InstanceState.RUNNING})
CAPABILITIES = frozenset({port.Capability.INTERRUPTIBLE, port.Capability.REBID, port.Capability.EVENTS})


@dataclass(frozen=True, slots=True)
class Pool:
    """The hosts of one GPU model on a course, equal except for their delays and `dlperfs`.

    Traffic is priced per gigabyte. Each start on a new host loads `image_gb`.
    """

    course: Course
    gpu: GpuModel
    dlperfs: tuple[float, ...] = (100.0, 100.0, 100.0)
    delays: Delays = field(default_factory=Delays)
    storage_micros_per_gb_month: int = 0
    traffic_micros_per_gb: int = 0


@dataclass(slots=True)
class _Held:
    """An instance in the market's own records."""

    instance_id: str
    number: int
    label: str
    tenure: Tenure
    rate: UsdPerHour
    disk_gb: float
    created: datetime
    state: InstanceState = InstanceState.LOADING
    ready_at: datetime | None = None
    is_wanted: bool = True


@dataclass(slots=True)
class Exchange:
    """A market of one pool. `job` is the work on its instances. Time passes by `advance`."""

    pool: Pool
    seed: str
    now: datetime
    job: Job
    name: str = "lab"
    dollars: float = 0.0
    losses: int = 0
    starts: int = 0
    _held: dict[str, _Held] = field(default_factory=dict)
    _starts: dict[int, int] = field(default_factory=dict)
    _rents: int = 0
    _events: list[MarketEvent] = field(default_factory=list)

    # --- time ---------------------------------------------------------------------------------------------------------
    def advance(self, until: datetime) -> None:
        """Let time pass until then: capacity comes and goes, starts end, work is done, money is spent."""
        for instant in self._instants(until):
            self._bill(instant)
            self.job.advance(instant)
            self.now = instant
            self._settle()

    def _instants(self, until: datetime) -> Iterator[datetime]:
        turns = list(self.pool.course.turns(self.now, until))
        while self.now < until:
            ready = [instance.ready_at for instance in self._held.values() if instance.ready_at is not None]
            following = [at for at in (*turns, *ready) if self.now < at < until]
            yield min(following, default=until)

    def _settle(self) -> None:
        for instance in self._held.values():
            if instance.ready_at is not None and instance.ready_at <= self.now:
                instance.state, instance.ready_at = InstanceState.RUNNING, None
                self.job.start(instance.instance_id, self.now, self._speed(instance))
        self._preempt()
        self._give_back()

    def _preempt(self) -> None:
        """Pause the youngest interruptible instances for which there is no capacity any more."""
        holding = [
            instance for instance in self._held.values() if self._is_contested(instance) and instance.state in HOLDS
        ]
        for instance in holding[self.pool.course.capacity(self.now) :]:
            if instance.state is InstanceState.RUNNING:
                self.losses += 1
            self._stop(instance)
            self._events.append(
                MarketEvent(
                    f"e{len(self._events)}",
                    self.name,
                    MarketEventKind.OUTBID,
                    instance.instance_id,
                    self.now,
                    instance.rate,
                )
            )

    def _give_back(self) -> None:
        """Start again the instances that wait for capacity, oldest first."""
        holding = sum(self._is_contested(instance) and instance.state in HOLDS for instance in self._held.values())
        room = self.pool.course.capacity(self.now) - holding
        waiting = [
            instance
            for instance in self._held.values()
            if instance.is_wanted and instance.state is InstanceState.PAUSED
        ]
        for instance in waiting:
            if instance.tenure is Tenure.ON_DEMAND or room > 0:
                room -= instance.tenure is Tenure.INTERRUPTIBLE
                self._start(instance)

    def _start(self, instance: _Held) -> None:
        turn = self._starts.get(instance.number, 0)
        self._starts[instance.number] = turn + 1
        self.starts += 1
        instance.state = InstanceState.LOADING
        instance.ready_at = self.now + self.pool.delays.draw(self.seed, f"h{instance.number}", turn)

    def _stop(self, instance: _Held) -> None:
        self.job.stop(instance.instance_id, self.now)
        instance.state, instance.ready_at = InstanceState.PAUSED, None

    def _bill(self, until: datetime) -> None:
        """Charge GPUs from the rent on, also while they load, as clouds do; disks always."""
        seconds = (until - self.now).total_seconds()
        for instance in self._held.values():
            gpus = instance.rate if instance.state in HOLDS else FREE
            self.dollars += (gpus + self._disk_rate(instance.disk_gb)).over(seconds).dollars

    # --- the port -----------------------------------------------------------------------------------------------------
    async def offers(self, query: port.OfferQuery) -> Sequence[Offer]:
        """Return the hosts without an instance of ours. A host with interruptible capacity has a floor."""
        taken = {instance.number for instance in self._held.values()}
        contested = sum(self._is_contested(instance) and instance.state in HOLDS for instance in self._held.values())
        room = self.pool.course.capacity(self.now) - contested
        free = [number for number in range(len(self.pool.dlperfs)) if number not in taken]
        return [self._offer(number, has_floor=place < room) for place, number in enumerate(free)][: query.max_rows]

    async def instances(self) -> Sequence[Instance]:
        """Return every instance."""
        return [self._row(instance) for instance in self._held.values()]

    async def instance(self, instance_id: str) -> Instance:
        """Return one instance."""
        return self._row(self._known(instance_id))

    async def rent(self, offer: Offer, terms: port.Terms, label: str) -> str:
        """Rent a free host. An interruptible rent needs capacity, and a bid of at least the floor."""
        number = int(offer.offer_id.removeprefix("a"))
        if any(other.number == number for other in self._held.values()):
            raise market_errors.Rejected("no_such_ask", "somebody holds it")
        rate = self.pool.course.ask if terms.bid is None else terms.bid
        if terms.bid is not None and (offer.floor is None or terms.bid < self.pool.course.floor(self.now)):
            raise market_errors.Rejected("bid_too_low", "the bid is below the floor")
        self._rents += 1
        instance_id = f"{self._rents}"
        instance = _Held(instance_id, number, label, terms.tenure, rate, terms.disk_gb, self.now)
        self._held[instance_id] = instance
        self._start(instance)
        return instance_id

    async def rebid(self, instance_id: str, bid: UsdPerHour) -> None:
        """Change the bid."""
        self._known(instance_id).rate = bid

    async def resume(self, instance_id: str) -> bool:
        """Start again if there is capacity. Else queue the start."""
        instance = self._known(instance_id)
        instance.is_wanted = True
        self._give_back()
        return instance.state in HOLDS

    async def pause(self, instance_id: str) -> None:
        """Stop, keep the disk, cancel a queued start."""
        instance = self._known(instance_id)
        instance.is_wanted = False
        self._stop(instance)

    async def release(self, instance_id: str, *, is_gone: bool = False, is_gentle: bool = False) -> None:
        """End for good."""
        del is_gone, is_gentle
        instance = self._held.get(instance_id)
        if instance is not None:
            self._stop(instance)
            del self._held[instance_id]

    async def account(self) -> port.Account:
        """Return an account that can pay anything."""
        return port.Account("lab", Usd(10**12), self.now)

    async def charges(self, since: datetime, until: datetime) -> Sequence[port.Charge]:
        """Return no charges: all spend is known exactly."""
        del since, until
        return ()

    async def events(self, since: datetime) -> Sequence[MarketEvent]:
        """Return the losses from `since` on."""
        return [event for event in self._events if event.at >= since]

    async def logs(self, instance_id: str, lines: int) -> Sequence[str]:
        """Return the log line with the progress of the work."""
        del lines
        hours = self.job.printed_hours(instance_id, self.now)
        return () if hours is None else (f"hours done: {hours:.9f}",)

    def search_delay(self, questions: int) -> float:  # noqa: ARG002 - as in the port
        """Return 0: it takes any number of questions."""
        return 0.0

    def instance_keys(self) -> None:
        """Return nothing: a trace has no shells."""

    def capabilities(self) -> frozenset[port.Capability]:
        """Return the abilities."""
        return CAPABILITIES

    def rules(self) -> MarketRules:
        """Return the rules of a market where each renter pays its bid."""
        return ASSUMED

    def not_sold(self) -> Mapping[Tenure, str]:
        """Return nothing: a trace sells both tenures."""
        return {}

    def server_time(self) -> datetime | None:
        """Return nothing: there is one clock."""

    async def close(self) -> None:
        """Close nothing."""

    # --- rows ---------------------------------------------------------------------------------------------------------
    def _is_contested(self, instance: _Held) -> bool:
        return instance.tenure is Tenure.INTERRUPTIBLE

    def _known(self, instance_id: str) -> _Held:
        instance = self._held.get(instance_id)
        if instance is None:
            raise market_errors.NotFound("no_such_instance", "there is none")
        return instance

    def _speed(self, instance: _Held) -> float:
        return self.pool.dlperfs[instance.number] / self.pool.dlperfs[0]

    def _disk_rate(self, disk_gb: float) -> UsdPerHour:
        return UsdPerHour(round(self.pool.storage_micros_per_gb_month * disk_gb / 720))

    def _offer(self, number: int, *, has_floor: bool) -> Offer:
        pool = self.pool
        return Offer(
            market=self.name,
            offer_id=f"a{number}",
            host_id=f"h{number}",
            owner_id=f"o{number}",
            gpu=pool.gpu,
            gpus=1,
            vram_mb=24_000,
            dlperf=pool.dlperfs[number],
            reliability=0.999,
            is_verified=True,
            region="",
            inet_down_mbps=1000.0,
            inet_up_mbps=1000.0,
            disk_gb=1000.0,
            ask=pool.course.ask,
            floor=pool.course.floor(self.now) if has_floor else None,
            storage_micros_per_gb_month=pool.storage_micros_per_gb_month,
            traffic_down_micros_per_gb=pool.traffic_micros_per_gb,
            traffic_up_micros_per_gb=0,
            ends_at=None,
            seen_at=self.now,
        )

    def _row(self, instance: _Held) -> Instance:
        return Instance(
            market=self.name,
            instance_id=instance.instance_id,
            label=instance.label,
            host_id=f"h{instance.number}",
            owner_id=f"o{instance.number}",
            tenure=instance.tenure,
            state=instance.state,
            gpu=self.pool.gpu,
            gpus=1,
            gpu_rate=instance.rate,
            disk_rate=self._disk_rate(instance.disk_gb),
            disk_gb=instance.disk_gb,
            created_at=instance.created,
            ends_at=None,
            dlperf=self.pool.dlperfs[instance.number],
            inet_down_mbps=1000.0,
            is_wanted_running=instance.is_wanted,
            bills_while_loading=True,
        )
