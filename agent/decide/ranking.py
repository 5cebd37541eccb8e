"""Offers that fit a workload, best first: a lazy search that stops looking once nothing left can be better."""

import heapq
from collections.abc import Iterator, Mapping
from datetime import datetime

from agent.decide import match, price
from agent.decide.strategy import Candidate, Pricing
from agent.domain import offer, workload
from agent.domain.host import HostRecord


def ranking(
    book: match.Book,
    work: workload.Workload,
    pricing: Pricing,
    hosts: Mapping[str, HostRecord],
    taken: match.Taken,
    now: datetime,
    market_loss_rate: float,
) -> Iterator[Candidate]:
    """Yield candidates in rising dollars per useful DLPerf-hour; ties go to the smaller offer id.

    Offers come in rising order of a lower bound of that cost, so a candidate is yielded once its true cost is not above
    the bound of the next offer: the search reads a few rows of a market of thousands.
    """
    found: list[tuple[float, str, int, Candidate]] = []
    for bound, candidate in book.rising(work):
        while found and found[0][0] <= bound:
            yield heapq.heappop(found)[3]
        if match.refusal(candidate, work, now, taken) is not None:
            continue
        best = _best_way(candidate, work, pricing, hosts.get(candidate.host_id), market_loss_rate)
        if best is not None:
            heapq.heappush(found, (best.reckoning.per_useful, candidate.offer_id, len(found), best))
    while found:
        yield heapq.heappop(found)[3]


def _best_way(
    candidate: offer.Offer,
    work: workload.Workload,
    pricing: Pricing,
    record: HostRecord | None,
    market_loss_rate: float,
) -> Candidate | None:
    reckoned = [
        Candidate(candidate, way, price.reckon(candidate, way, work, record, market_loss_rate))
        for way in pricing(candidate)
    ]
    return min(reckoned, key=lambda option: option.reckoning.per_useful, default=None)
