"""plan(fleet, strategies, limits, ...) -> Plan: the decisions of now, in a fixed order.

Order: stop paying for leases that nobody uses or that a person stopped (release), then stop paying past a budget
(pause). After that come the proposals of the workloads' strategies that the limits allow, slot by slot in the order of
the configuration; bids that only wait for a price come last, and give way to what could run. Where a cap on rates
forbade the start of an idle slot, its strategy chooses again after all others, among what the caps leave.

Invariants:
1. The same fleet, numbers and `now` give the same plan, byte for byte.
2. A slot gets at most one paying decision, and none while it has an open paying intent.
3. No host gets a second lease. A pool of hosts may.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from agent.decide import first_orders, slots
from agent.decide.deadline import availability, availability_by_market, deadline_progress, reference_speed
from agent.decide.demand import demand_window, waiting_slots
from agent.decide.limits import limits
from agent.decide.moves import (
    break_before_make,
    checkpointing,
    claimed_hosts,
    cooldowns_after_writes,
    fallback_markets,
    forbidden_restart,
    last_checkpoint,
    maintenance_checkpoint,
    permission,
    second_choice,
)
from agent.decide.moves.auctions import waiting_room
from agent.decide.moves.permission import Bounds
from agent.decide.moves.waiting_endings import WaitingEndings
from agent.decide.operators import reload
from agent.decide.pricing import (
    cooldowns,
    funnel,
    host_record,
    measured_checkpoints,
    measured_speed,
    offer_refusal,
    ranking,
    refused_hosts,
    rival_bids,
    spread,
)
from agent.decide.pricing.cooldowns import InForce
from agent.decide.pricing.worth import work_value
from agent.decide.reconcile import workload_end
from agent.decide.run_times import run_windows, running_limits
from agent.decide.strategy import Candidate, Pricing, Proposal, SlotView, Tuned, View
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.market.host import HostKey, HostRecord, decayed
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Rebid, Release, Rent, Resume, slot_of
from agent.domain.work.workload import Workload


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions in the order in which they are carried out; `tuned` is the strategy of each workload.

    `asked` are the endings that wait for a last checkpoint; a hold replaces each among the decisions. `given_up` are
    leases that were asked for one before and whose ending is no longer due. `before_maintenance` are the orders for
    checkpoints before announced maintenance: the intent that rented each lease, and the order's id. `drained` are the
    leases that their proxies drain, also those whose ending is sent now.
    """

    now: datetime
    decisions: tuple[Decision, ...]
    standing: limits.CommittedSpend
    tuned: Mapping[str, Tuned]
    asked: tuple[last_checkpoint.Asked, ...] = ()
    given_up: tuple[Lease, ...] = ()
    before_maintenance: tuple[tuple[str, str], ...] = ()
    drained: tuple[Lease, ...] = ()


@dataclass(frozen=True, slots=True)
class Ground:
    """Values that all workloads of one plan share: arranged offers, hosts in use, cooldowns, and begun searches.

    `believed` are the workloads, by name, with the figures that their prices are calculated from.
    """

    books: offer_refusal.OffersByMarkets
    used_hosts: set[HostKey]
    in_force: InForce
    market_hazard: float
    hosts: Mapping[HostKey, HostRecord]
    everything: HostRecord
    rivals: rival_bids.Rivals
    believed: Mapping[str, Workload]
    speeds: measured_speed.Speeds
    refused: Mapping[str, refused_hosts.RefusedHosts]
    """The hosts that the guard of each workload would reject again, by its name."""
    closed: Mapping[str, frozenset[str]]
    """The fallback markets of each workload that are not open yet, by its name."""
    searches: dict[Hashable, ranking.Replay] = field(default_factory=dict)
    claimed: set[HostKey] = field(default_factory=set)
    """Hosts for which a slot of this plan cancels the start of its old lease."""
    fits: Callable[[Candidate], bool] | None = None
    """Whether a candidate is offered to a strategy that chooses again; None for its first choice."""


def plan(
    fleet: Fleet,
    tuned: Mapping[str, Tuned],
    caps: limits.Limits,
    faulty: frozenset[str] = frozenset(),
) -> Plan:
    """Return the decisions of now. `tuned` maps a workload's `strategy` to its code and numbers."""
    ground = _ground(fleet := work_value.resolved(fleet))
    bounds = Bounds(fleet, caps, faulty, ground.in_force, ground.believed)
    now_standing = limits.committed_by_fleet(fleet)
    waits, room = WaitingEndings(fleet), waiting_room.WaitingRoom(fleet)
    first = first_orders.of(bounds, now_standing, waits)
    bounds = replace(bounds, fleet=first.fleet)
    decisions = [*first.decisions]
    parts = ((work, _proposals(fleet, work, tuned[work.strategy], ground)) for work in fleet.workloads)
    for work, proposal in waiting_room.in_turn(fleet, parts):
        if proposal.slot in first.taken:
            continue
        settled = _settled(proposal, work, bounds, now_standing)
        room.look(settled, proposal)
        decision = waits.instead(claimed_hosts.instead(settled, proposal, ground.claimed, ground.used_hosts))
        now_standing = _after(now_standing, decision, work)
        if isinstance(decision, Rent):
            ground.used_hosts.add(decision.offer.host)
        decisions.append(decision)
    decisions, now_standing = _second_choices(decisions, room, tuned, ground, bounds, now_standing)
    decisions = room.given(decisions, now_standing, lambda each, left: _would_be_allowed(each, bounds, left))
    chosen = {work.name: tuned[work.strategy] for work in fleet.workloads}
    waiting = tuple(waits.asked), waits.given_up(decisions), tuple(maintenance_checkpoint.orders(fleet)), waits.leases
    return Plan(fleet.now, tuple(decisions), now_standing, chosen, *waiting)


def _second_choices(
    decisions: list[Decision],
    room: waiting_room.WaitingRoom,
    tuned: Mapping[str, Tuned],
    ground: Ground,
    bounds: Bounds,
    now_standing: limits.CommittedSpend,
) -> tuple[list[Decision], limits.CommittedSpend]:
    """Return the decisions and the committed spend, with second choices where a cap on rates forbade a start."""
    places = second_choice.places(decisions, room.forbidden)
    rents: dict[Slot, Decision] = {}
    for work in (each for each in bounds.fleet.workloads if not places.isdisjoint(each.places)):
        again = replace(ground, fits=_fitting(work, bounds, now_standing))
        for proposal in _proposals(bounds.fleet, work, tuned[work.strategy], again):
            if proposal.slot not in places or waiting_room.waits(bounds.fleet, proposal):
                continue
            decision = _settled(proposal, work, bounds, now_standing)
            if isinstance(decision, Rent):
                now_standing = _after(now_standing, decision, work)
                ground.used_hosts.add(decision.offer.host)
                rents[decision.slot] = decision
    room.forget(rents)
    return [rents.get(slot_of(each), each) if isinstance(each, Hold) else each for each in decisions], now_standing


def _fitting(work: Workload, bounds: Bounds, now_standing: limits.CommittedSpend) -> Callable[[Candidate], bool]:
    """Return whether the limits allow the rent of a candidate in addition to the present commitments."""

    def fits(candidate: Candidate) -> bool:
        rent = _rent(work.places[0], candidate, bounds.believed[work.name], Reason("fits", ""))
        return not isinstance(permission.allowed(rent, bounds, now_standing), Hold)

    return fits


def _would_be_allowed(proposal: Proposal, bounds: Bounds, now_standing: limits.CommittedSpend) -> bool:
    work, kind = bounds.believed[proposal.slot.workload], IntentKind.RENT if proposal.candidate else proposal.kind
    order = _decision(replace(proposal, kind=kind), work)
    return not isinstance(permission.permitted(order, bounds, now_standing), Hold)


def _settled(proposal: Proposal, work: Workload, bounds: Bounds, now_standing: limits.CommittedSpend) -> Decision:
    """Return the decision about a proposal. Only these steps may replace it, in this order."""
    believed = bounds.believed[work.name]
    # An order that the market has just refused, or a start without effect yet, is not repeated.
    wanted = cooldowns_after_writes.instead(_decision(proposal, believed), work, bounds.fleet)
    # A slot that has just been moved is not moved again, and a person's hold outranks the strategy.
    wanted = permission.willed(wanted, bounds.in_force)
    # Limits, the proof that an instance is ours, and the protection of leases that could not be rented again outrank
    # both.
    decision = permission.allowed(wanted, bounds, now_standing)
    decision = forbidden_restart.instead(decision, bounds, now_standing)
    # If no budget allows the old and the new lease together, the old one goes first.
    decision = break_before_make.instead(decision, proposal, wanted, work, bounds, now_standing)
    if isinstance(decision, Pause) and proposal.candidate is not None:
        wanted_rent = _rent(proposal.slot, proposal.candidate, believed, proposal.reason)
        rent = permission.permitted(wanted_rent, bounds, now_standing.after(decision))
        # A cancelled start for a move that is not allowed would leave the slot with neither.
        decision = rent if isinstance(rent, Hold) else decision
    return decision


def _after(now_standing: limits.CommittedSpend, decision: Decision, work: Workload) -> limits.CommittedSpend:
    pledge = limits.pledged(decision, work) if isinstance(decision, Rent) else money.ZERO
    return now_standing.after(decision, pledge)


def unpaid(fleet: Fleet, why: str) -> Fleet:
    """Return a fleet whose markets must not be paid anything, if there is a reason `why`.

    The plan of such a fleet releases no lease that would have to be rented again.
    """
    if not why:
        return fleet
    views = {
        name: msgspec.structs.replace(view, no_spend_because=view.no_spend_because or why)
        for name, view in fleet.markets.items()
    }
    return msgspec.structs.replace(fleet, markets=views)


def _ground(fleet: Fleet) -> Ground:
    # A bid beside an instance of the same account, ours or not, may outbid that instance on its host.
    listed = {row.host for view in fleet.markets.values() for row in view.instances}
    in_doubt = {intent.host for intent in fleet.intents if intent.is_open and intent.host_id}
    records = {key: decayed(record, fleet.now) for key, record in fleet.hosts.items()}
    everything = host_record.total(records.values(), fleet.now)
    offers = {name: view.offers for name, view in fleet.markets.items()}
    books = offer_refusal.OffersByMarkets(offers, fleet.host_checks.values())
    return Ground(
        books=books,
        used_hosts={lease.host for lease in fleet.leases if lease.is_open} | in_doubt | listed,
        in_force=cooldowns.in_force(fleet),
        market_hazard=host_record.hazard_of(everything),
        hosts=host_record.pooled(records, fleet.now),
        everything=everything,
        rivals=rival_bids.learned(everything),
        believed=measured_checkpoints.all_believed(fleet),
        speeds=measured_speed.speeds(fleet.host_checks.values()),
        refused={work.name: refused_hosts.of(fleet, work, books.of(work)) for work in fleet.workloads},
        closed={work.name: fallback_markets.closed(fleet, work) for work in fleet.workloads},
    )


def _proposals(fleet: Fleet, work: Workload, chosen: Tuned, ground: Ground) -> Iterator[Proposal]:
    views: list[SlotView] = []
    waiting, leaving = waiting_slots.of(fleet, work, ground.in_force.holds), demand_window.leaving(fleet, work)
    for place in work.places:
        if place in waiting:
            yield Proposal(place, None, waiting[place])
            continue
        answer = slots.view_or_proposal(fleet, place, ground.in_force)
        ending = leaving.get(place)
        if ending is not None and (isinstance(answer, SlotView) or demand_window.outranks(ending, answer)):
            answer = ending
        if isinstance(answer, Proposal):
            yield answer
        else:
            views.append(_dated(_renewed(answer, work, fleet), fleet))
    if views:
        yield from _chosen(fleet, work, tuple(views), chosen, ground)


def _chosen(
    fleet: Fleet, work: Workload, views: tuple[SlotView, ...], chosen: Tuned, ground: Ground
) -> Iterator[Proposal]:
    """Yield the strategy's proposal for each of these slots."""
    proposals = {each.slot: each for each in chosen.strategy.propose(_view(fleet, work, views, ground), chosen.params)}
    taken = offer_refusal.Unavailable(ground.used_hosts, ground.in_force.cooling)
    is_told = ground.fits is None and any(map(funnel.finds_nothing, proposals.values()))
    found = funnel.of(fleet, work, taken, ground.closed[work.name]) if is_told else None
    closed = (*fallback_markets.why_closed(fleet, work), *funnel.unread(fleet, work)) if is_told else ()
    for seen in views:
        nothing = Proposal(seen.slot, None, Reason("no_proposal", "the strategy proposes nothing"))
        proposal = funnel.explained(proposals.get(seen.slot, nothing), found, closed)
        yield replace(proposal, reason=reference_speed.told(proposal.reason, fleet, work))


def _view(fleet: Fleet, work: Workload, views: tuple[SlotView, ...], ground: Ground) -> View:
    """Return everything that a strategy sees of a workload."""
    # What a demand ends now is no reason for a strategy to end another lease.
    leaving = demand_window.leaving(fleet, work)
    leases = tuple(lease for place in work.places if place not in leaving for lease in fleet.leases_of(place))
    return View(
        workload=demand_window.seen_by_strategy(fleet, work),
        slots=views,
        now=fleet.now,
        has_offers=any(each.market not in ground.closed[work.name] for each in ground.books.of(work).offers),
        ranking=lambda pricing: _ranked(fleet, work, pricing, ground),
        market_hazard=ground.market_hazard,
        hosts=ground.hosts,
        everything=ground.everything,
        rivals=ground.rivals,
        markets=tuple(name for name in fleet.markets if work.may_use(name)),
        leases=leases,
        unseen=frozenset(each.lease_id for each in leases if not fleet.is_seen(each)),
        task=deadline_progress.of(fleet, work),
        learned=availability.learned(fleet.capacity.get(work.name)),
        fastest=work_value.fastest(fleet.typical, work),
        by_market=availability_by_market.known(fleet, work),
        losses=tuple(loss for loss in fleet.losses if loss.slot.workload == work.name),
        rules={name: seen.rules for name, seen in fleet.markets.items()},
        warm=fleet.warm.get(work.name),
    )


def _renewed(seen: SlotView, work: Workload, fleet: Fleet) -> SlotView:
    """Return a slot as empty if its lease has an older spec or has run its time: it is released when a new one runs."""
    lease = seen.lease
    if lease is None or seen.arriving is not None:
        return seen
    is_due = reload.moves(lease, work) or running_limits.moves(fleet, lease, work)
    if not is_due or run_windows.why_too_late(fleet, seen.slot) is not None:
        return seen
    return SlotView(seen.slot, None, left=lease.market, hours_left=seen.hours_left)


def _dated(seen: SlotView, fleet: Fleet) -> SlotView:
    """Return a slot; without a lease, with when and where it was left, or when it was first asked for."""
    if seen.lease is not None:
        return seen
    asked_since = fleet.known_since.get(seen.slot.workload, fleet.started_at)
    since = fleet.vacated.get(seen.slot, asked_since)
    return replace(seen, empty_since=since, left=seen.left or fleet.left.get(seen.slot, ""))


def _ranked(fleet: Fleet, work: Workload, pricing: Pricing, ground: Ground) -> Iterator[Candidate]:
    """Yield candidates on distinct hosts that no lease of ours uses, nor any rent of this plan."""
    yielded: set[HostKey] = set()
    owners = spread.owners(fleet, work)
    for candidate in _search(fleet, work, pricing, ground):
        host = candidate.offer.host
        is_taken = host in yielded or (host in ground.used_hosts and not host.is_pool)
        is_taken = is_taken or (host, candidate.offer.gpu) in ground.refused[work.name]
        is_taken = is_taken or host.market in ground.closed[work.name]
        is_taken = is_taken or spread.is_crowded(work, candidate.offer.owner, owners)
        is_taken = is_taken or (ground.fits is not None and not ground.fits(candidate))
        if not is_taken and not workload_end.is_avoided(work, host, ground.in_force):
            yielded.add(host)
            # The reader has taken a candidate when it asks for the next one.
            owners[candidate.offer.owner] += 1
            yield candidate


def _search(fleet: Fleet, work: Workload, pricing: Pricing, ground: Ground) -> Iterable[Candidate]:
    """Return the candidates of a workload's markets.

    The set of used hosts only grows, so earlier results stay valid.
    """
    work = ground.believed[work.name]
    book = ground.books.of(work)
    asked = ranking.question(work, pricing)
    if asked not in ground.searches:
        taken = offer_refusal.Unavailable(ground.used_hosts, ground.in_force.cooling, ground.in_force.refused_bids)
        judged = ranking.Judged(ground.hosts, ground.speeds)
        ranked = ranking.ranking(book, work, pricing, judged, taken, fleet.now, ground.market_hazard)
        ground.searches[asked] = ranking.Replay(ranked)
    return ground.searches[asked]


def _decision(proposal: Proposal, work: Workload) -> Decision:
    if proposal.kind is None:
        return Hold(proposal.slot, proposal.reason)
    if proposal.kind is IntentKind.RENT and proposal.candidate is not None:
        return _rent(proposal.slot, proposal.candidate, work, proposal.reason)
    return _of_lease(proposal)


def _rent(slot: Slot, candidate: Candidate, work: Workload, reason: Reason) -> Rent:
    offer, way = candidate.offer, candidate.way
    bid = None if way.tenure is not Tenure.INTERRUPTIBLE else way.bid
    advice = checkpointing.advice(work, way.tenure, candidate.reckoning.hazard)
    rent = Rent(slot, offer, way.tenure, bid, way.bid + offer.disk_rate(work.disk_gb), reason, advice)
    if way.limit is None:
        return rent
    return replace(rent, is_limit=True, expected=None if way.is_waiting else way.rate)


def _of_lease(proposal: Proposal) -> Decision:
    lease = proposal.lease
    if lease is not None:
        if proposal.kind is IntentKind.REBID and proposal.bid is not None:
            return Rebid(lease, proposal.bid, proposal.reason)
        if proposal.kind is IntentKind.RESUME:
            return Resume(lease, proposal.reason)
        if proposal.kind is IntentKind.PAUSE:
            return Pause(lease, proposal.reason)
        if proposal.kind is IntentKind.RELEASE:
            return Release(lease, proposal.reason)
    return Hold(proposal.slot, Reason("bad_proposal", "the strategy's proposal names no offer or lease"))
