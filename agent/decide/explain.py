"""A plan as sentences and as JSON: the choice, the next best candidates, and why other offers were refused."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from agent.decide import market_sentences
from agent.decide.moves import checkpointing, fallback_markets
from agent.decide.plan import Plan
from agent.decide.pricing import (
    cooldowns,
    host_record,
    measured_checkpoints,
    measured_speed,
    offer_refusal,
    offer_terms,
    ranking,
    refused_hosts,
    useful_hour,
)
from agent.decide.pricing import funnel as funnels
from agent.decide.pricing.funnel import Funnel, Relaxed
from agent.decide.pricing.worth import value_frontier, work_value
from agent.decide.strategy import Candidate, Pricing
from agent.domain.fleet import Fleet
from agent.domain.market.host import HostKey
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.work.decision import Advice, Decision, Hold, Option, Rebid, Rent, kind_of, slot_of
from agent.domain.work.workload import Workload

NEXT_BEST = 4
FRONTIER = 64
"""The most candidates of each tenure to look at for the frontier."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An offer that was refused, and the first requirement that it failed."""

    offer: Offer
    why: offer_refusal.Refusal


@dataclass(frozen=True, slots=True)
class Explanation:
    """The grounds of a workload's decisions: candidates best first, and refused offers."""

    workload: str
    decisions: tuple[Decision, ...]
    candidates: tuple[Candidate, ...]
    refused: tuple[Refused, ...]
    offers: int
    funnel: Funnel | None = None
    """The offers of the markets' samples that are left after each requirement; None before the first sample."""
    relaxed: Relaxed | None = None
    """The requirement whose removal alone lets the most of that sample fit; None if no single one helps."""
    advised: tuple[tuple[str, str, Advice], ...] = ()
    """The intervals of checkpoints: (slot, host, advice) of leases and of planned rents."""
    measured: Mapping[str, measured_checkpoints.Measured] = field(default_factory=dict)
    """The figures of its checkpoints that guards measured."""
    used: frozenset[str] = frozenset()
    """The names of those figures that replace the file's."""
    speeds: tuple[tuple[HostKey, float], ...] = ()
    """The share of DLPerf that measured hosts keep, for hosts with an offer now."""
    value: UsdPerHour | None = None
    """What an hour of its work is worth, if the workload says so; None: `max_price`."""
    value_share: float | None = None
    """The share of the on-demand price by which it says so, if it does."""
    frontier: tuple[value_frontier.Step, ...] = ()
    """Useful hours against dollars a day, by what can be rented now."""
    notice: tuple[str, ...] = ()
    """The known notice before an interruption of each of its markets, if it has a guard."""
    arrears: tuple[str, ...] = ()
    """Which of its markets send a bill later, so that only budgets stop spending there."""
    not_sold: tuple[str, ...] = ()
    """What its markets do not sell now, and why, in sentences."""
    network_volume: str = ""
    """Where its network volume is, and what that means, in a sentence; empty without one."""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The offers of a workload and all by which they are ranked, but for the ways to hold them."""

    book: offer_refusal.OrderedOffers
    work: Workload
    """With the measured figures of its checkpoints."""
    judged: ranking.Judged
    taken: offer_refusal.Unavailable
    rejected: refused_hosts.RefusedHosts
    now: datetime
    hazard: float

    def of(self, pricing: Pricing) -> Iterator[Candidate]:
        """Yield the candidates by these ways to hold them, best first."""
        ranked = ranking.ranking(self.book, self.work, pricing, self.judged, self.taken, self.now, self.hazard)
        return (each for each in ranked if (each.offer.host, each.offer.gpu) not in self.rejected)


def explain(fleet: Fleet, planned: Plan, work: Workload) -> Explanation:
    """Return the grounds of the decisions of `planned` for one workload, from the same offers."""
    fleet = work_value.resolved(fleet)
    work = fleet.workload(work.name) or work
    measured = measured_checkpoints.of(fleet, work)
    reckoned = measured_checkpoints.believed(work, measured)
    rank = _ranking(fleet, planned, work, reckoned)
    ways = _both_ways(work, _limit_markets(fleet))
    return Explanation(
        workload=work.name,
        decisions=tuple(decision for decision in planned.decisions if slot_of(decision).workload == work.name),
        candidates=tuple(islice(_on_distinct_hosts(rank.of(ways)), 1 + NEXT_BEST)),
        refused=_refused(rank.book, work, fleet, rank.taken, rank.rejected),
        offers=len(rank.book.offers),
        funnel=funnels.of(fleet, work, rank.taken),
        relaxed=funnels.relaxed(fleet, work, rank.taken),
        advised=tuple(_advised(fleet, planned, work, reckoned)),
        measured=measured,
        used=measured_checkpoints.used(reckoned, work),
        speeds=_offered(rank.judged.speeds, rank.book.offers),
        value=work.value_per_hour,
        value_share=work.value_share,
        frontier=_frontier(fleet, work, rank, ways),
        notice=tuple(market_sentences.notices(fleet, work)),
        arrears=tuple(market_sentences.arrears(fleet, work)),
        not_sold=(*market_sentences.not_sold(fleet, work), *fallback_markets.why_closed(fleet, work)),
        network_volume=market_sentences.of_volume(work, rank.book.offers),
    )


def _ranking(fleet: Fleet, planned: Plan, work: Workload, reckoned: Workload) -> _Ranking:
    """Return the offers of a workload with their facts. A host that `planned` rents counts as free."""
    offers = {name: view.offers for name, view in fleet.markets.items()}
    book = offer_refusal.OffersByMarkets(offers, fleet.host_checks.values()).of(work)
    rented = {decision.offer.host for decision in planned.decisions if isinstance(decision, Rent)}
    leased_hosts = {lease.host for lease in fleet.leases if lease.is_open} - rented
    in_force = cooldowns.in_force(fleet)
    speeds = measured_speed.speeds(fleet.host_checks.values())
    return _Ranking(
        book,
        reckoned,
        ranking.Judged(host_record.pooled(fleet.hosts, fleet.now), speeds),
        offer_refusal.Unavailable(leased_hosts, in_force.cooling, in_force.refused_bids),
        refused_hosts.of(fleet, work, book),
        fleet.now,
        host_record.market_hazard(fleet.hosts.values(), fleet.now),
    )


def _frontier(fleet: Fleet, work: Workload, rank: _Ranking, ways: Pricing) -> tuple[value_frontier.Step, ...]:
    """Return useful hours against dollars a day, by the best candidates of each tenure."""
    candidates = (each for way in _each_way(ways) for each in islice(rank.of(way), FRONTIER))
    return value_frontier.of_candidates(candidates, work.value_per_hour, work_value.fastest(fleet.typical, work))


def _offered(speeds: measured_speed.Speeds, offers: Iterable[Offer]) -> tuple[tuple[HostKey, float], ...]:
    """Return the share of DLPerf that hosts with an offer keep, sorted by host."""
    keys = {(offer.host, offer.gpu) for offer in offers}
    return tuple(sorted((host, share) for (host, gpu), share in speeds.items() if (host, gpu) in keys))


def _advised(fleet: Fleet, planned: Plan, work: Workload, reckoned: Workload) -> Iterator[tuple[str, str, Advice]]:
    for lease in (lease for place in work.places for lease in fleet.leases_of(place)):
        given = checkpointing.of_lease(fleet, lease, reckoned)
        if given is not None:
            yield str(lease.slot), lease.host_id, given
    for decision in planned.decisions:
        if isinstance(decision, Rent) and decision.slot.workload == work.name and decision.advice is not None:
            yield str(decision.slot), decision.offer.host_id, decision.advice


def _on_distinct_hosts(ranked: Iterator[Candidate]) -> Iterator[Candidate]:
    seen: set[HostKey] = set()
    for candidate in ranked:
        if candidate.offer.host not in seen:
            seen.add(candidate.offer.host)
            yield candidate


def _limit_markets(fleet: Fleet) -> frozenset[str]:
    return frozenset(name for name, view in fleet.markets.items() if view.rules.has_limits)


def _both_ways(work: Workload, limit_markets: frozenset[str]) -> Pricing:
    """Return the plain ways to hold an offer, at floor and at ask; the strategy's own bid is in its decision."""
    bids = offer_terms.Bids(work.prices, work.disk_gb, 0.0, 1.0).under(limit_markets, work.value_per_hour)

    def ways(candidate: Offer) -> Sequence[useful_hour.Way]:
        if candidate.market in limit_markets:
            return bids(candidate)
        most = work.price_of(candidate.gpu) - candidate.disk_rate(work.disk_gb)
        found = [(Tenure.INTERRUPTIBLE, candidate.floor), (Tenure.ON_DEMAND, candidate.ask)]
        return [useful_hour.Way(tenure, rate) for tenure, rate in found if rate is not None and rate <= most]

    return ways


def _each_way(ways: Pricing) -> tuple[Pricing, Pricing]:
    """Return two ways to hold an offer: by the bids of these ways alone, and by their asks alone."""

    def of(tenure: Tenure) -> Pricing:
        return lambda candidate: [way for way in ways(candidate) if way.tenure is tenure]

    return of(Tenure.INTERRUPTIBLE), of(Tenure.ON_DEMAND)


def _refused(
    book: offer_refusal.OrderedOffers,
    work: Workload,
    fleet: Fleet,
    taken: offer_refusal.Unavailable,
    rejected: refused_hosts.RefusedHosts,
) -> tuple[Refused, ...]:
    refused: list[Refused] = []
    ways = _both_ways(work, _limit_markets(fleet))
    for candidate in book.offers:
        why = offer_refusal.refusal(candidate, work, fleet.now, taken)
        if why is None and candidate.is_price_unknown:
            why = offer_refusal.Refusal("price_unknown", funnels.UNKNOWN)
        if why is None and not ways(candidate):
            sentence = (
                f"floor {candidate.floor} and ask {candidate.ask} are above {work.price_of(candidate.gpu)} with disk"
            )
            why = offer_refusal.Refusal("price", sentence)
        why = why or rejected.get((candidate.host, candidate.gpu)) or _refused_bid(candidate, ways(candidate), taken)
        if why is not None:
            refused.append(Refused(candidate, why))
    return tuple(refused)


def _refused_bid(
    candidate: Offer, ways: Iterable[useful_hour.Way], taken: offer_refusal.Unavailable
) -> offer_refusal.Refusal | None:
    """Return a refusal if every way to hold an offer is a bid that the market has just refused as too low."""
    if not all(taken.refuses(candidate, way) for way in ways):
        return None
    bid = taken.refused_bids[candidate.key]
    return offer_refusal.Refusal("bid_refused", f"a bid of {bid} was refused lately: only a higher one is tried")


def sentence(decision: Decision) -> str:
    """Return a decision as one line for a person."""
    return as_line(as_json(decision))


def as_line(said: Mapping[str, Any]) -> str:
    """Return the result of `as_json` as one line for a person."""
    struck = f" (limit {said['limit']})" if said["limit"] else ""
    return f"{said['slot']}: {said['kind']}, {said['code']}{struck}: {said['sentence']}"


def as_json(decision: Decision) -> dict[str, Any]:
    """Return a decision as plain JSON values; money in dollars per hour."""
    slot = slot_of(decision)
    said: dict[str, Any] = {
        "slot": str(slot),
        "kind": "hold" if isinstance(decision, Hold) else kind_of(decision).value,
        "code": decision.reason.code,
        "sentence": decision.reason.sentence,
        "limit": decision.reason.limit or None,
        "options": [_option(option) for option in decision.reason.options],
    }
    if isinstance(decision, Rent):
        said |= _offer(decision.offer) | {"tenure": decision.tenure.value, "dollars_per_hour": decision.rate.dollars}
        said["bid_dollars_per_hour"] = decision.bid.dollars if decision.bid is not None else None
        said |= _margin(decision.bid if decision.is_limit else None, decision.expected)
    elif not isinstance(decision, Hold):
        said |= {"lease": decision.lease.lease_id, "host": decision.lease.host_id}
    if isinstance(decision, Rebid):
        limit = None if decision.lease.bid_limit is None else decision.bid
        said |= {"bid_dollars_per_hour": decision.bid.dollars, **_margin(limit, decision.lease.gpu_rate)}
    return said


def _margin(limit: UsdPerHour | None, expected: UsdPerHour | None) -> dict[str, Any]:
    """Return the expected price of a limit and what is between the two; without a limit or a price, nulls."""
    if limit is None or expected is None:
        return {"expected_dollars_per_hour": None, "margin_dollars_per_hour": None}
    return {"expected_dollars_per_hour": expected.dollars, "margin_dollars_per_hour": (limit - expected).dollars}


def explanation_json(explained: Explanation) -> dict[str, Any]:
    """Return an explanation as plain JSON values."""
    return {
        "workload": explained.workload,
        "offers_seen": explained.offers,
        "decisions": [as_json(decision) for decision in explained.decisions],
        "funnel": _funnel(explained.funnel, explained.relaxed),
        "candidates": [_candidate(candidate) for candidate in explained.candidates],
        "refused": [
            _offer(row.offer) | {"code": row.why.code, "sentence": row.why.sentence} for row in explained.refused
        ],
        "checkpoints": [
            {
                "slot": slot,
                "host": host,
                "losses_per_hour": given.hazard,
                "seconds": given.interval,
                "by_age": [{"age_seconds": age, "seconds": seconds} for age, seconds in given.by_age],
            }
            for slot, host, given in explained.advised
        ],
        "value_dollars_per_hour": None if explained.value is None else explained.value.dollars,
        "value_share_of_on_demand": explained.value_share,
        "frontier": [value_frontier.as_json(step) for step in explained.frontier],
        "notice": list(explained.notice),
        "arrears": list(explained.arrears),
        "not_sold": list(explained.not_sold),
        "network_volume": explained.network_volume or None,
        "speeds": [{"host": str(host), "share_of_dlperf": share} for host, share in explained.speeds],
        "measured": [
            {
                "figure": name,
                "median": one.figure,
                "unit": measured_checkpoints.UNITS[name],
                "leases": one.leases,
                "hosts": one.hosts,
                "is_used": name in explained.used,
            }
            for name, one in sorted(explained.measured.items())
        ],
    }


def _funnel(found: Funnel | None, relaxed: Relaxed | None) -> dict[str, Any]:
    cheapest = None if found is None else found.cheapest
    steps = () if found is None else found.steps
    return {
        "sampled_at": None if found is None else found.sampled_at.isoformat(),
        "age_seconds": None if found is None else found.age.total_seconds(),
        "rows": 0 if found is None else found.rows,
        "steps": [{"code": step.code, "wanted": step.wanted, "left": step.left} for step in steps],
        "fits": 0 if found is None else found.fits,
        "cheapest_dollars_per_hour": None if cheapest is None else cheapest.dollars,
        "loosen_key": None if relaxed is None else relaxed.key,
        "loosen_fits": None if relaxed is None else relaxed.fits,
        "loosen_dollars_per_hour": None if relaxed is None else relaxed.cheapest.dollars,
        "sentence": "" if found is None else found.sentence,
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        **_offer(candidate.offer),
        "tenure": candidate.way.tenure.value,
        "dollars_per_hour": candidate.way.rate.dollars,
        "limit_dollars_per_hour": None if candidate.way.limit is None else candidate.way.limit.dollars,
        **_margin(candidate.way.limit, candidate.way.rate),
        "score_dlperf_hours_per_dollar": candidate.reckoning.score,
        "terms": [_term(term.name, term.figure, term.unit) for term in candidate.reckoning.terms()],
    }


def _offer(offer: Offer) -> dict[str, Any]:
    return {
        "market": offer.market,
        "offer": offer.offer_id,
        "host": offer.host_id,
        "gpu": offer.gpu,
        "gpus": offer.gpus,
        "ask_dollars_per_hour": offer.ask.dollars if offer.ask is not None else None,
        "floor_dollars_per_hour": offer.floor.dollars if offer.floor is not None else None,
        "reliability": offer.reliability,
    }


def _option(option: Option) -> dict[str, Any]:
    return {
        "name": option.name,
        "dollars": round(option.dollars, 6),
        "terms": [_term(term.name, term.figure, term.unit) for term in option.terms],
    }


def _term(name: str, figure: float, unit: str) -> Mapping[str, Any]:
    return {"name": name, "figure": round(figure, 6), "unit": unit}
