"""Offers that fit a workload, best first: a lazy search that ends once no other offer can be better."""

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from agent.decide.pricing import host_record, offer_refusal, protections, useful_hour, value_limit
from agent.decide.pricing.measured_speed import UNMEASURED, Speeds
from agent.decide.strategy import Candidate, Pricing
from agent.domain.market import offer
from agent.domain.market.host import HostKey, HostRecord
from agent.domain.work import workload


class Judged(msgspec.Struct, frozen=True):
    """Our record of each host, and the share of its DLPerf that it keeps by measurement."""

    hosts: Mapping[HostKey, HostRecord]
    speeds: Speeds = UNMEASURED


def ranking(
    book: offer_refusal.OrderedOffers,
    work: workload.Workload,
    pricing: Pricing,
    judged: Judged,
    taken: offer_refusal.Unavailable,
    now: datetime,
    market_loss_rate: float,
) -> Iterator[Candidate]:
    """Yield candidates in rising dollars per useful DLPerf-hour; ties go to the smaller offer id.

    Offers come in rising order of a lower bound of that cost. A candidate is yielded once its true cost is below the
    bound of the next offer, so the search reads a few rows of a market of thousands. A measured speed never makes an
    offer better than its bound.
    """
    found: list[tuple[float, str, int, Candidate]] = []
    fits = offer_refusal.fitting(work, now)
    for place, (bound, candidate) in enumerate(book.rising(work.requirements)):
        while found and found[0][0] < bound:
            yield heapq.heappop(found)[3]
        if not fits(candidate) or not offer_refusal.is_free(candidate, taken):
            continue
        ways = [way for way in pricing(candidate) if not _is_barred(candidate, way, taken)]
        speed = min(judged.speeds.get((candidate.host, candidate.gpu), 1.0), 1.0) if judged.speeds else 1.0
        record = host_record.of_offer(judged.hosts, candidate)
        reckon = useful_hour.stay_cost(candidate, work, record, market_loss_rate, speed)
        best = _best_way(candidate, ways, reckon)
        if best is not None:
            heapq.heappush(found, (best.reckoning.per_useful, candidate.offer_id, place, best))
    while found:
        yield heapq.heappop(found)[3]


def question(work: workload.Workload, pricing: Pricing) -> Hashable:
    """Return the key of a ranking: all it depends on except the offers. Workloads with equal keys share one search."""
    return (
        work.markets,
        # Without markets of its own a workload may use all of them, also as a fallback.
        work.fallback.markets if work.markets else (),
        offer_refusal.wanted(work),
        useful_hour.horizon_hours(work),
        work.image_gb,
        work.dataset_gb,
        work.checkpoint,
        work.prices,
        work.value_per_hour,
        pricing,
    )


class Replay:
    """A lazy search that several workloads read, each from the best candidate on. Each offer is searched once."""

    def __init__(self, search: Iterator[Candidate]) -> None:
        """Read from `search` when earlier results are used up."""
        self._search = search
        self._found: list[Candidate] = []

    def __iter__(self) -> Iterator[Candidate]:
        """Yield every candidate, best first."""
        place = 0
        while True:
            if place == len(self._found):
                following = next(self._search, None)
                if following is None:
                    return
                self._found.append(following)
            yield self._found[place]
            place += 1


def _is_barred(candidate: offer.Offer, way: useful_hour.Way, taken: offer_refusal.Unavailable) -> bool:
    return taken.refuses(candidate, way) or protections.is_barred(candidate, way.tenure, taken.cooling)


def _best_way(
    candidate: offer.Offer,
    ways: Iterable[useful_hour.Way],
    reckon: Callable[[useful_hour.Way], useful_hour.StayCost],
) -> Candidate | None:
    reckoned = [found for way in ways if (found := _reckoned(candidate, way, reckon)) is not None]
    best = min(reckoned, key=lambda found: found[1].per_useful, default=None)
    return None if best is None else Candidate(candidate, *best)


def _reckoned(
    candidate: offer.Offer, way: useful_hour.Way, reckon: Callable[[useful_hour.Way], useful_hour.StayCost]
) -> tuple[useful_hour.Way, useful_hour.StayCost] | None:
    """Return a way with its reckoning; None if its limit is below the price that wins."""
    stay = reckon(way)
    if way.limit is None:
        return way, stay
    settled = value_limit.settled(way, stay, candidate.floor)
    return None if settled is None else (settled, stay if settled.rate == way.rate else reckon(settled))
