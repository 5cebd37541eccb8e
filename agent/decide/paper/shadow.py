"""A shadow: another strategy beside the live one on the same view, with a paper position of its own.

Invariants:
1. Nothing here can reach a market: a shadow is a value, and its decisions change only paper.
2. The same fleets in the same order give the same decisions and the same figures.
3. The workload's price and the limit per instance bind it. Budgets and credit, which are the fleet's, do not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import msgspec

from agent.decide import plan, slot_releases
from agent.decide.accounting.meter import Charge
from agent.decide.facts import Fact, LeaseChanged
from agent.decide.limits.limits import Limits
from agent.decide.moves import cooldowns_after_writes, fallback_markets
from agent.decide.paper.paper_ledger import PaperLedger
from agent.decide.paper.paper_market import PaperMarket
from agent.decide.reconcile import outcomes, reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.service import warm_record
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet, MarketView, Spend
from agent.domain.market.host import is_pool
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.deadline import Progress
from agent.domain.work.decision import Decision, Hold, Pause, Rebid, Release, Rent, Resume, slot_of
from agent.domain.work.ready_sign import Sighting
from agent.domain.work.workload import Workload

ROUNDS = 3
"""A cycle that does something is followed by the next at once, as in live cycles: a cancelled start, then the rent."""
KEPT = timedelta(days=1)
"""How far back a strategy sees its own losses."""
SHARED = frozenset({CooldownKind.HOST, CooldownKind.OWNER, CooldownKind.MARKET, CooldownKind.OFFER})
"""Live cooldowns that bind a shadow too, as every hold does: they are about hosts and offers, not about the
position."""


@dataclass(slots=True)
class Tally:
    """The figures of a shadow's decisions: money in micro-dollars, time in microseconds."""

    gpu: int = 0
    disk: int = 0
    traffic: int = 0
    paid: int = 0
    useful: int = 0
    lost: int = 0
    interruptions: int = 0
    starts: int = 0
    rents: int = 0

    @property
    def spent(self) -> int:
        """All money, in micro-dollars."""
        return self.gpu + self.disk + self.traffic

    def add(self, charges: Iterable[Charge]) -> None:
        """Count the cost of a lease."""
        for charge in charges:
            self.gpu += charge.gpu.micros
            self.disk += charge.disk.micros
            self.traffic += charge.traffic.micros
            if charge.phases is not None:
                self.paid += charge.phases.paid
                self.useful += charge.phases.useful + charge.phases.redeemed - charge.phases.spoiled
                self.lost += charge.phases.spoiled


@dataclass(slots=True)
class Shadow:
    """One strategy that shadows one workload since an instant, with all its memory."""

    workload: str
    strategy: str
    since: datetime
    paper: PaperMarket = field(default_factory=PaperMarket)
    book: PaperLedger = field(default_factory=PaperLedger)
    memory: Memory = field(default_factory=Memory)
    tally: Tally = field(default_factory=Tally)
    done_before: float = 0.0
    """Hours of a deadline job that were done when the shadow began."""
    gists: dict[Slot, tuple[str, ...]] = field(default_factory=dict)
    listings: int = 0
    learns: bool = False
    """Whether it judges hosts by paper events, because no fleet really ran."""
    digest: str = ""
    """The digest of the numbers behind all its decisions."""


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one fleet: every decision, and the new ones."""

    decisions: tuple[Decision, ...]
    news: tuple[Decision, ...]
    facts: tuple[Fact, ...]


def begun(work: Workload, chosen: Tuned, fleet: Fleet) -> Shadow:
    """Return a shadow that begins with the live position: with copies of the workload's open leases."""
    reported = fleet.progress.get(work.name)
    done = reported.hours if reported is not None else 0.0
    shadow = Shadow(work.name, chosen.name, fleet.now, done_before=done, digest=chosen.digest)
    shadow.book.ran_micros.update(fleet.ran_micros)
    for place in work.places:
        for lease in fleet.leases_of(place):
            if lease.state is LeaseState.RELEASING:
                continue
            instance_id = shadow.paper.adopt(lease, work, fleet.now)
            shadow.book.put(_copied(lease, instance_id, fleet.now))
    return shadow


def step(shadow: Shadow, fleet: Fleet, chosen: Tuned, caps: Limits) -> Step | None:
    """Let a shadow see a real fleet, decide, and act on paper; None if its workload is gone."""
    work = fleet.workload(shadow.workload)
    if work is None:
        return None
    work = replace(work, strategy=shadow.strategy)
    shadow.paper.see(fleet)
    _forget(shadow, fleet.now)
    decisions: list[Decision] = []
    facts: list[Fact] = []
    for _ in range(ROUNDS):
        facts += _learned(shadow, fleet, work)
        seen, book = _fleet(shadow, fleet, work), shadow.book
        book.warm = warm_record.watched(book.warm, seen, lambda work: chosen.params.warm_slots(work.slots))
        seen = fallback_markets.with_warm_slots(seen, {shadow.strategy: chosen})
        seen = msgspec.structs.replace(seen, warm=book.warm)
        planned = plan.plan(seen, {shadow.strategy: chosen}, _bound(caps))
        decisions = [*(each for each in decisions if not isinstance(each, Hold)), *planned.decisions]
        if not sum([_carried_out(shadow, decision, work, fleet) for decision in planned.decisions]):
            break
    return Step(tuple(decisions), tuple(_news(shadow, decisions)), tuple(facts))


def _forget(shadow: Shadow, now: datetime) -> None:
    """Forget old memory; hosts and starts are the fleet's, if one really ran."""
    book = shadow.book
    book.forget_over(now)
    book.losses = [loss for loss in book.losses if loss.at >= now - KEPT]
    book.starts.clear()
    if not shadow.learns:
        book.hosts.clear()


def packed(shadow: Shadow) -> bytes:
    """Return a shadow as bytes."""
    return msgspec.msgpack.encode(shadow)


def unpacked(kept: bytes) -> Shadow | None:
    """Return the shadow of these bytes; None if another release wrote them."""
    try:
        return msgspec.msgpack.decode(kept, type=Shadow)
    except (msgspec.MsgspecError, ValueError, TypeError):
        return None


class _Numbered(msgspec.Struct):
    digest: str = ""


def digest_of(kept: bytes) -> str:
    """Return the digest of the numbers of a shadow in these bytes; empty if they have none."""
    try:
        return msgspec.msgpack.decode(kept, type=_Numbered).digest
    except (msgspec.MsgspecError, ValueError, TypeError):
        return ""


def _bound(caps: Limits) -> Limits:
    return Limits(per_instance_hour=caps.per_instance_hour)


def _news(shadow: Shadow, decisions: Iterable[Decision]) -> Iterable[Decision]:
    for decision in decisions:
        place, gist = slot_of(decision), _gist(decision)
        if shadow.gists.get(place) != gist:
            shadow.gists[place] = gist
            yield decision


def _gist(decision: Decision) -> tuple[str, ...]:
    """Return the parts of a decision that must differ for it to be new; figures in its sentence change every cycle."""
    what = [type(decision).__name__, decision.reason.code]
    if isinstance(decision, Rent):
        what += [decision.offer.host_id, str(decision.bid)]
    elif isinstance(decision, Rebid):
        what.append(str(decision.bid))
    return tuple(what)


def _fleet(shadow: Shadow, fleet: Fleet, work: Workload) -> Fleet:
    """Return the fleet with the same offers and holds, and paper leases instead of real ones."""
    book = shadow.book
    shared = [record for record in fleet.cooldowns if record.kind in SHARED]
    own = [record for record in book.cooldowns.values() if not record.is_over(fleet.now)]
    held = [each for each in book.holds.values() if not each.is_over(fleet.now)]
    return msgspec.structs.replace(
        fleet,
        workloads=(work,),
        markets={name: _view(shadow, view, fleet) for name, view in fleet.markets.items()},
        leases=book.open(),
        intents=(),
        spend=Spend(),
        spend_of={},
        holds=tuple({each.place: each for each in (*fleet.holds, *held)}.values()),
        cooldowns=tuple({record.place: record for record in (*shared, *own)}.values()),
        tallies=tuple(each for each in book.tallies.values() if not each.is_over(fleet.now)),
        reported_crossings=(),
        past_leases={},
        past_intents={},
        losses=tuple(loss for loss in book.losses if loss.at >= fleet.now - KEPT),
        vacated=book.vacated,
        left=book.left,
        ran_micros=book.ran_micros,
        hosts=book.hosts if shadow.learns else fleet.hosts,
        known_since={work.name: shadow.since},
        progress=_progress(shadow, fleet, work),
        warm=book.warm,
    )


def _view(shadow: Shadow, view: MarketView, fleet: Fleet) -> MarketView:
    rows = shadow.paper.rows(view)
    # On a host of ours the floor is our own bid; without us it would not be for rent at that price.
    ours = {lease.host_id for lease in fleet.leases if lease.market == view.market and not is_pool(lease.host_id)}
    return msgspec.structs.replace(
        view,
        instances=rows,
        labels={},
        listings=shadow.listings,
        absent_ids=frozenset(row.instance_id for row in view.instances),
        no_spend_because="",
        credit=None,
        events=tuple(event for event in shadow.paper.events if event.market == view.market),
        rises=(),
        notices=(),
        offers=tuple(row for row in view.offers if row.host_id not in ours),
        sightings={row.instance_id: Sighting(row.instance_id, fleet.now, is_ready=True) for row in rows},
    )


def _progress(shadow: Shadow, fleet: Fleet, work: Workload) -> dict[str, Progress]:
    """Return the progress of the work: one hour of work for each useful hour."""
    if work.deadline is None:
        return {}
    reported = fleet.progress.get(work.name)
    hours = shadow.done_before + max(shadow.tally.useful, 0) / 3.6e9
    since = reported.since if reported is not None else shadow.since
    return {work.name: Progress(work.name, hours, fleet.now, since, "paper")}


def _learned(shadow: Shadow, fleet: Fleet, work: Workload) -> tuple[Fact, ...]:
    shadow.listings += 1
    reconciled = reconcile.reconcile(_fleet(shadow, fleet, work), shadow.memory)
    if reconciled.suspects:
        # Paper listings are never wrong, so this same look is the second look at a loss.
        reconciled = reconcile.reconcile(_fleet(shadow, fleet, work), reconciled.memory)
    shadow.memory = reconciled.memory
    for fact in reconciled.facts:
        shadow.book.learn(fact, fleet.now, {work.name: work.image_gb})
        if isinstance(fact, LeaseChanged):
            shadow.tally.add(fact.charges)
            shadow.tally.interruptions += fact.kind == EventKind.LEASE_INTERRUPTED
            shadow.tally.starts += fact.kind in {EventKind.LEASE_RUNNING, EventKind.LEASE_RESUMED}
    return reconciled.facts


def _carried_out(shadow: Shadow, decision: Decision, work: Workload, fleet: Fleet) -> bool:
    if isinstance(decision, Hold):
        return False
    if isinstance(decision, Rent):
        return _rented(shadow, decision, work, fleet)
    if decision.lease.instance_id not in shadow.paper.held:
        return False
    now, is_accepted = fleet.now, _written(shadow.paper, decision, fleet.now)
    written = outcomes.written(decision, now, work.checkpoint, work.ready, is_accepted=is_accepted)
    shadow.tally.add(written.charges)
    ended = (
        msgspec.structs.replace(written.lease, state=LeaseState.ENDED, ended_at=now)
        if isinstance(decision, Release)
        else written.lease
    )
    shadow.book.put(ended)
    if isinstance(decision, Release):
        for record in cooldowns_after_writes.after_release(decision, now):
            shadow.book.mark(record)
    return True


def _written(paper: PaperMarket, decision: Rebid | Resume | Pause | Release, now: datetime) -> bool:
    """Change an instance; return whether its start begins at once."""
    instance_id = decision.lease.instance_id
    if isinstance(decision, Resume):
        return paper.resume(instance_id, now)
    if isinstance(decision, Rebid):
        paper.rebid(instance_id, decision.bid, now)
    elif isinstance(decision, Pause):
        paper.pause(instance_id)
    else:
        paper.release(instance_id)
    return True


def _rented(shadow: Shadow, decision: Rent, work: Workload, fleet: Fleet) -> bool:
    instance_id = shadow.paper.rent(decision, work, fleet)
    if instance_id is None:
        shadow.book.mark(
            Cooldown(CooldownKind.OFFER, decision.offer.key, fleet.now + slot_releases.LOADING_SPARE, "bid_too_low")
        )
        return False
    intent = Intent(
        intent_id=instance_id,
        kind=IntentKind.RENT,
        state=IntentState.CONFIRMED,
        market=decision.offer.market,
        slot=decision.slot,
        recorded_at=fleet.now,
        reason=decision.reason.code,
        disk_gb=work.disk_gb,
    )
    shadow.book.put(outcomes.rented(intent, decision, instance_id, fleet.now).lease)
    shadow.book.mark(cooldowns_after_writes.after_rent(decision.slot, fleet.now))
    shadow.tally.rents += 1
    return True


def _copied(lease: Lease, instance_id: str, now: datetime) -> Lease:
    """Return a real lease as a paper lease, counted from now on and without our label."""
    state = lease.state if lease.state in {LeaseState.RUNNING, LeaseState.STARTING} else LeaseState.PAUSED
    return msgspec.structs.replace(
        lease,
        lease_id=f"{lease.market}-{instance_id}",
        instance_id=instance_id,
        state=state,
        bills=Bills.GPU_AND_DISK if state is LeaseState.RUNNING else Bills.DISK,
        accrued_until=now,
        traffic_down_gb=0.0 if not lease.has_run else lease.traffic_down_gb,
        traffic_up_gb=0.0,
        intent_id=instance_id,
    )
