"""One loop over a market in memory: look, reconcile, plan, carry out; the same decisions as live, without a ledger.

Invariants:
1. Only the market's port is read: a strategy sees the same as it would see live.
2. An order that the market refuses changes nothing, except for the market's reply.
"""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from agent.decide import needs, plan
from agent.decide.deadline import availability, availability_by_market, deadline_progress, progress_facts
from agent.decide.facts import LeaseChanged
from agent.decide.limits import limits
from agent.decide.moves import cooldowns_after_writes
from agent.decide.paper.paper_ledger import PaperLedger
from agent.decide.reconcile import outcomes, reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.service import warm_record
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.capacity import Capacity
from agent.domain.market.host import HostRecord
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Decision, Pause, Rebid, Release, Rent, Resume
from agent.domain.work.ready_sign import Sighting
from agent.domain.work.workload import Workload
from agent.markets import market_errors, port
from agent.observe.poller import Poller

T = TypeVar("T")
FLEET = "lab"
ROUNDS = 3
"""A cycle that sent an order is followed by the next at once, as live: for example a cancelled start, then the rent."""
EVENTS_KEPT = timedelta(hours=6)
KEPT = timedelta(days=1)


class Waits(Exception):
    """A market in memory must not wait."""


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """Return the result of a call to a market in memory, without an event loop.

    Raises:
        Waits: the call would have to wait.
    """
    try:
        call.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    call.close()
    raise Waits


@dataclass(slots=True)
class Engine:
    """Runs workloads under strategies over one market in memory. `decisions` are all decisions except holds.

    With a `poller` the market is listed and searched as by the daemon. Without one, each cycle sees everything.
    """

    market: port.Market
    workloads: tuple[Workload, ...]
    tuned: Mapping[str, Tuned]
    now: datetime
    caps: limits.Limits = field(default_factory=limits.Limits)
    poller: Poller | None = None
    book: PaperLedger = field(default_factory=PaperLedger)
    decisions: list[tuple[datetime, Decision]] = field(default_factory=list)
    _began: datetime = field(init=False)
    _view: MarketView = field(init=False)
    _memory: Memory = field(default_factory=Memory)
    _listings: int = 0
    _typical: dict[Any, float] = field(default_factory=dict)
    _capacity: dict[str, Capacity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with an empty history at the present time."""
        self._began = self.now

    def cycle(self, now: datetime) -> None:
        """Do one wake of the daemon: look, reconcile, plan, act, until there is nothing more to send."""
        self.now = now
        for _ in range(ROUNDS):
            if not self._pass():
                return

    def see(self, view: MarketView, now: datetime) -> plan.Plan:
        """Do one pass over a recorded view, and return its plan."""
        self.now, self._view = now, view
        reconciled = self._reconciled(view)
        self._learn(reconciled)
        planned = self._planned(view, reconciled)
        for decision in planned.decisions:
            self._carry_out(decision)
        return planned

    def _pass(self) -> bool:
        reconciled = self._found() if self.poller is None else self._polled(self.poller)
        self._learn(reconciled)
        view = self._view
        if self.poller is not None:
            fleet = self._fleet(view)
            needed = needs.needs(fleet, self.caps, reconciled.faulty, self.tuned)
            view = at_once(self.poller.ask(needed, self.workloads, needs.expensive_workloads(fleet)))
        planned = self._planned(view, reconciled)
        return sum([self._carry_out(decision) for decision in planned.decisions]) > 0

    def _learn(self, reconciled: reconcile.Reconciliation) -> None:
        self._memory = reconciled.memory
        for fact in reconciled.facts:
            self.book.learn(fact, self.now, self._image_gb)
        for progress in progress_facts.new_progress(self._fleet(self._view)):
            self.book.hear(progress)

    def _planned(self, view: MarketView, reconciled: reconcile.Reconciliation) -> plan.Plan:
        fleet = self._fleet(view)
        self._typical = deadline_progress.typical(self._typical, fleet)
        fleet = msgspec.structs.replace(fleet, typical=self._typical)
        self._capacity = availability.watched(self._capacity, fleet) | availability_by_market.watched(
            self._capacity, fleet
        )
        self.book.warm = warm_record.watched(self.book.warm, fleet, warm_record.needed_by(self.tuned))
        fleet = msgspec.structs.replace(fleet, capacity=self._capacity, warm=self.book.warm)
        return plan.plan(fleet, self.tuned, self.caps, reconciled.faulty)

    def _found(self) -> reconcile.Reconciliation:
        self._view = self._look()
        return self._reconciled(self._view)

    def _reconciled(self, view: MarketView) -> reconcile.Reconciliation:
        reconciled = reconcile.reconcile(self._fleet(view), self._memory)
        return reconcile.reconcile(self._fleet(view), reconciled.memory) if reconciled.suspects else reconciled

    def _polled(self, poller: Poller) -> reconcile.Reconciliation:
        """Look as the daemon does: a second time, and by id, before a loss or a disappearance is believed."""
        self._view = at_once(poller.look())
        reconciled = reconcile.reconcile(self._fleet(self._view), self._memory)
        turned = any(
            isinstance(fact, LeaseChanged) and fact.before.bills is not fact.after.bills for fact in reconciled.facts
        )
        if not (reconciled.suspects or reconciled.to_probe or turned):
            return reconciled
        memory = self._memory
        if reconciled.suspects:
            memory = reconciled.memory
            at_once(poller.look())
        self._view = at_once(poller.look_closer(reconciled.to_probe))
        return reconcile.reconcile(self._fleet(self._view), memory)

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
            rules=self.market.rules(),
            offers=tuple({row.offer_id: row for row in offers}.values()),
            answered=tuple(sorted(work.name for work in self.workloads)),
            sightings={row.instance_id: self._sight(row.instance_id) for row in rows},
        )

    def _sight(self, instance_id: str) -> Sighting:
        lease = next((each for each in self.book.leases.values() if each.instance_id == instance_id), None)
        work = next((each for each in self.workloads if lease is not None and each.name == lease.slot.workload), None)
        hours = None
        if work is not None and work.deadline is not None and work.deadline.line:
            lines = at_once(self.market.logs(instance_id, 1))
            hours = next((printed for line in lines if (printed := work.deadline.hours_in(line)) is not None), None)
        return Sighting(instance_id, self.now, is_ready=True, hours=hours)

    @property
    def _monotonic(self) -> float:
        return (self.now - self._began).total_seconds()

    def _fleet(self, view: MarketView) -> Fleet:
        book = self.book
        return Fleet(
            fleet_id=FLEET,
            now=self.now,
            monotonic=self._monotonic,
            started_at=self._began,
            workloads=self.workloads,
            markets={view.market: view},
            leases=book.open(),
            holds=tuple(each for each in book.holds.values() if not each.is_over(self.now)),
            cooldowns=tuple(rest for rest in book.cooldowns.values() if not rest.is_over(self.now)),
            tallies=tuple(each for each in book.tallies.values() if not each.is_over(self.now)),
            hosts=book.hosts,
            losses=tuple(loss for loss in book.losses if loss.at >= self.now - KEPT),
            vacated=book.vacated,
            left=book.left,
            known_since=dict.fromkeys((work.name for work in self.workloads), self._began),
            progress=book.progress,
            speeds=tuple(book.speeds.values()),
            starts=tuple(book.starts),
            typical=self._typical,
            capacity=self._capacity,
            warm=book.warm,
        )

    @property
    def _image_gb(self) -> Mapping[str, float]:
        return {work.name: work.image_gb for work in self.workloads}

    # --- acting -------------------------------------------------------------------------------------------------------
    def _carry_out(self, decision: Decision) -> bool:
        try:
            if isinstance(decision, Rent):
                self._rent(decision)
            elif isinstance(decision, Rebid | Resume | Pause | Release):
                self._write(decision)
            else:
                return False
        except market_errors.Rejected as error:
            self._refused(decision, error)
            return False
        except market_errors.NotFound:
            return False
        self.decisions.append((self.now, decision))
        return True

    def _refused(self, decision: Decision, error: market_errors.Rejected) -> None:
        for rest in cooldowns_after_writes.after_refusal(
            decision, error.reason, tuple(self.book.tallies.values()), self.now
        ):
            self.book.mark(rest)
        if isinstance(decision, Rent) and error.leftover_id:
            left = outcomes.rented(self._intent(decision), decision, error.leftover_id, self.now, is_leftover=True)
            self.book.put(left.lease)

    def _rent(self, decision: Rent) -> None:
        work = next(each for each in self.workloads if each.name == decision.slot.workload)
        terms = port.Terms(decision.tenure, decision.bid, work.disk_gb, work.image)
        intent = self._intent(decision)
        instance_id = at_once(self.market.rent(decision.offer, terms, intent.intent_id))
        self.book.put(outcomes.rented(intent, decision, instance_id, self.now).lease)
        self.book.mark(cooldowns_after_writes.after_rent(decision.slot, self.now))

    def _intent(self, decision: Rent) -> Intent:
        work = next(each for each in self.workloads if each.name == decision.slot.workload)
        return Intent(
            intent_id=f"{len(self.decisions):016x}",
            kind=IntentKind.RENT,
            state=IntentState.CONFIRMED,
            market=decision.offer.market,
            slot=decision.slot,
            recorded_at=self.now,
            reason=decision.reason.code,
            disk_gb=work.disk_gb,
        )

    def _write(self, decision: Rebid | Resume | Pause | Release) -> None:
        lease, is_accepted = decision.lease, True
        if isinstance(decision, Rebid):
            at_once(self.market.rebid(lease.instance_id, decision.bid))
        elif isinstance(decision, Resume):
            is_accepted = at_once(self.market.resume(lease.instance_id))
        elif isinstance(decision, Pause):
            at_once(self.market.pause(lease.instance_id))
        else:
            at_once(self.market.release(lease.instance_id))
        work = next(each for each in self.workloads if each.name == lease.slot.workload)
        change = outcomes.written(decision, self.now, work.checkpoint, work.ready, is_accepted=is_accepted)
        self.book.meter(lease, change.charges, self.now)
        for place in cooldowns_after_writes.ended_tallies(decision):
            self.book.tallies.pop(place, None)
        if not isinstance(decision, Release):
            self.book.put(change.lease)
            return
        # The market in memory confirms at once that the instance is gone.
        self.book.put(replace(lease, state=LeaseState.ENDED, ended_at=self.now))
        for rest in cooldowns_after_writes.after_release(decision, self.now):
            self.book.mark(rest)
        if decision.reason.code in cooldowns_after_writes.FAILED_STARTS:
            self.book.expose(lease, self.now, HostRecord(lease.market, lease.host_id, starts_failed=1.0))


def _query(work: Workload) -> port.OfferQuery:
    return port.OfferQuery(work.requirements, work.disk_gb, gpu_models=work.requirements.gpu_models)
