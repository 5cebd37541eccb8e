"""One loop over a market in memory: look, reconcile, plan, carry out; the same decisions as live, without a ledger.

Invariants:
1. Nothing of the market but the port is looked at: what a strategy sees is what it would see live.
2. An order that the market refuses changes nothing but what it says of it.
"""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from agent.decide import cooldown, limits, outcomes, plan, progress, reconcile, recovery
from agent.decide.facts import Fact, LeaseChanged, Marked, ProgressTold
from agent.decide.memory import Memory
from agent.decide.strategy import Tuned
from agent.domain.cooldown import Cooldown
from agent.domain.deadline import Progress, Speed, Start
from agent.domain.decision import Decision, Pause, Rebid, Release, Rent, Resume
from agent.domain.fleet import Fleet, MarketView
from agent.domain.host import HostRecord, decayed
from agent.domain.intent import Intent, IntentKind, IntentState
from agent.domain.interruption import Loss
from agent.domain.lease import Lease, LeaseState
from agent.domain.readiness import Sighting
from agent.domain.tenure import Tenure
from agent.domain.workload import Slot, Workload
from agent.markets import errors, port

T = TypeVar("T")
FLEET = "lab"
ROUNDS = 3
"""A cycle that sent something is followed by the next at once, as live: a cancelled start, then the rent."""
EVENTS_KEPT = timedelta(hours=6)
KEPT = timedelta(days=1)


class Waits(Exception):
    """A market in memory that waits for something is none."""


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """Return what a call to a market in memory returns, without an event loop.

    Raises:
        Waits: it would have to wait.
    """
    try:
        call.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    call.close()
    raise Waits


@dataclass(slots=True)
class Book:
    """What the ledger would remember."""

    leases: dict[str, Lease] = field(default_factory=dict)
    cooldowns: dict[tuple[str, str], Cooldown] = field(default_factory=dict)
    hosts: dict[str, HostRecord] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    vacated: dict[Slot, datetime] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)
    speeds: dict[tuple[str, str], Speed] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)

    def put(self, lease: Lease) -> None:
        """Remember a lease; one that ended is forgotten."""
        if lease.is_open:
            self.leases[lease.lease_id] = lease
            return
        self.leases.pop(lease.lease_id, None)
        if lease.has_run and lease.ended_at is not None:
            self.vacated[lease.slot] = lease.ended_at

    def rest(self, scope: str, key: str, until: datetime, code: str) -> None:
        """Let something rest."""
        self.cooldowns[scope, key] = Cooldown(scope, key, until, code)


@dataclass(slots=True)
class Engine:
    """Runs workloads under strategies over one market in memory; `decisions` are those that were not holds."""

    market: port.Market
    workloads: tuple[Workload, ...]
    tuned: Mapping[str, Tuned]
    now: datetime
    caps: limits.Limits = field(default_factory=limits.Limits)
    book: Book = field(default_factory=Book)
    decisions: list[tuple[datetime, Decision]] = field(default_factory=list)
    _began: datetime = field(init=False)
    _memory: Memory = field(default_factory=Memory)
    _listings: int = 0
    _typical: dict[Any, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin now."""
        self._began = self.now

    def cycle(self, now: datetime) -> None:
        """Do what the daemon does in one wake: look, reconcile, plan, act, until nothing more is to be sent."""
        self.now = now
        for _ in range(ROUNDS):
            if not self._pass():
                return

    def _pass(self) -> bool:
        view = self._look()
        found = reconcile.reconcile(self._fleet(view), self._memory)
        if found.suspects:
            found = reconcile.reconcile(self._fleet(view), found.memory)
        self._memory = found.memory
        for fact in found.facts:
            self._learn(fact)
        for told in progress.told(self._fleet(view)):
            self._hear(told)
        made = plan.plan(self._fleet(view), self.tuned, self.caps, found.faulty)
        return sum([self._carry_out(decision) for decision in made.decisions]) > 0

    # --- looking ------------------------------------------------------------------------------------------------------
    def _look(self) -> MarketView:
        self._listings += 1
        rows = tuple(at_once(self.market.instances()))
        account = at_once(self.market.account())
        offers = [row for work in self.workloads for row in at_once(self.market.offers(_query(work)))]
        return MarketView(
            market=self.market.name,
            instances=rows,
            listed_at=self.now,
            listed_monotonic=self._monotonic,
            is_fresh=True,
            listings=self._listings,
            is_key_proven=True,
            credit=account.credit,
            account_id=account.account_id,
            events=tuple(at_once(self.market.events(self.now - EVENTS_KEPT))),
            offers=tuple({row.offer_id: row for row in offers}.values()),
            sightings={row.instance_id: self._sight(row.instance_id) for row in rows},
        )

    def _sight(self, instance_id: str) -> Sighting:
        held = next((each for each in self.book.leases.values() if each.instance_id == instance_id), None)
        work = next((each for each in self.workloads if held is not None and each.name == held.slot.workload), None)
        hours = None
        if work is not None and work.deadline is not None and work.deadline.line:
            lines = at_once(self.market.logs(instance_id, 1))
            hours = next((told for line in lines if (told := work.deadline.hours_in(line)) is not None), None)
        return Sighting(instance_id, self.now, is_ready=True, hours=hours)

    @property
    def _monotonic(self) -> float:
        return (self.now - self._began).total_seconds()

    def _fleet(self, view: MarketView) -> Fleet:
        book = self.book
        self._typical |= {(row.gpu, row.gpus): row.dlperf for row in view.offers}
        return Fleet(
            fleet_id=FLEET,
            now=self.now,
            monotonic=self._monotonic,
            started_at=self._began,
            workloads=self.workloads,
            markets={view.market: view},
            leases=tuple(sorted(book.leases.values(), key=lambda held: (held.opened_at, held.lease_id))),
            cooldowns=tuple(rest for rest in book.cooldowns.values() if rest.until > self.now),
            hosts=book.hosts,
            losses=tuple(loss for loss in book.losses if loss.at >= self.now - KEPT),
            vacated=book.vacated,
            known_since=dict.fromkeys((work.name for work in self.workloads), self._began),
            progress=book.progress,
            speeds=tuple(book.speeds.values()),
            starts=tuple(book.starts),
            typical=self._typical,
        )

    # --- what happened ------------------------------------------------------------------------------------------------
    def _learn(self, fact: Fact) -> None:
        if isinstance(fact, Marked):
            self.book.rest(fact.rest.scope, fact.rest.key, fact.rest.until, fact.rest.code)
        if not isinstance(fact, LeaseChanged):
            return
        after = fact.after
        self.book.put(after)
        if fact.cooldown is not None:
            rest = fact.cooldown
            self.book.rest(rest.scope, rest.key, rest.until, rest.code)
        if fact.kind == "lease.interrupted":
            self.book.losses.append(Loss(after.state_since, after.slot, after.market, after.host_id, fact.cause))
        if fact.kind == "lease.running":
            took = (after.state_since - after.opened_at).total_seconds()
            self.book.starts.append(Start(after.lease_id, after.market, after.state_since, max(took, 0.0)))
            self.book.rest(cooldown.RAN, f"{after.slot}@{after.lease_id}", self.now + cooldown.RAN_COUNTS, "ran")
        self._expose(fact)

    def _expose(self, fact: LeaseChanged) -> None:
        """Add to the record of the host what it did to us."""
        after, ran = fact.after, sum(charge.running_seconds for charge in fact.charges)
        is_loss = fact.kind == "lease.interrupted"
        if not ran and not is_loss and fact.kind != "lease.running":
            return
        known = self.book.hosts.get(after.host_id) or HostRecord(after.market, after.host_id, after.owner_id)
        more = HostRecord(
            after.market,
            after.host_id,
            running_seconds=ran,
            bid_seconds=ran if after.tenure is Tenure.INTERRUPTIBLE else 0.0,
            interruptions=float(is_loss),
            market_losses=float(is_loss and fact.cause in recovery.OF_THE_MARKET),
            starts_ok=float(fact.kind == "lease.running"),
        )
        self.book.hosts[after.host_id] = replace(decayed(known, self.now).plus(more), updated_at=self.now)

    def _hear(self, told: ProgressTold) -> None:
        self.book.progress[told.after.workload] = told.after
        more = told.speed
        if more is not None:
            known = self.book.speeds.get((more.workload, more.gpu)) or Speed(more.workload, more.gpu)
            hours, running = known.hours + more.hours, known.running_hours + more.running_hours
            self.book.speeds[more.workload, more.gpu] = Speed(more.workload, more.gpu, hours, running)

    # --- acting -------------------------------------------------------------------------------------------------------
    def _carry_out(self, decision: Decision) -> bool:
        try:
            if isinstance(decision, Rent):
                self._rent(decision)
            elif isinstance(decision, Rebid | Resume | Pause | Release):
                self._write(decision)
            else:
                return False
        except errors.Rejected:
            return False
        self.decisions.append((self.now, decision))
        return True

    def _rent(self, decision: Rent) -> None:
        work = next(each for each in self.workloads if each.name == decision.slot.workload)
        terms = port.Terms(decision.tenure, decision.bid, work.disk_gb, work.image)
        number = f"{len(self.decisions):016x}"
        instance_id = at_once(self.market.rent(decision.offer, terms, number))
        intent = Intent(
            intent_id=number,
            kind=IntentKind.RENT,
            state=IntentState.CONFIRMED,
            market=decision.offer.market,
            slot=decision.slot,
            recorded_at=self.now,
            reason=decision.reason.code,
            disk_gb=work.disk_gb,
        )
        self.book.put(outcomes.rented(intent, decision, instance_id, self.now).lease)

    def _write(self, decision: Rebid | Resume | Pause | Release) -> None:
        held, is_accepted = decision.lease, True
        if isinstance(decision, Rebid):
            at_once(self.market.rebid(held.instance_id, decision.bid))
        elif isinstance(decision, Resume):
            is_accepted = at_once(self.market.resume(held.instance_id))
        elif isinstance(decision, Pause):
            at_once(self.market.pause(held.instance_id))
        else:
            at_once(self.market.release(held.instance_id))
            # The market in memory says at once and for good that it is gone.
            self.book.put(replace(held, state=LeaseState.ENDED, ended_at=self.now))
            return
        work = next(each for each in self.workloads if each.name == held.slot.workload)
        made = outcomes.written(decision, self.now, work.checkpoint, work.ready, is_accepted=is_accepted)
        self.book.put(made.lease)


def _query(work: Workload) -> port.OfferQuery:
    return port.OfferQuery(work.requirements, work.disk_gb, gpu_models=work.requirements.gpu_models)
