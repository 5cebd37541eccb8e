"""A strategy on our own recorded time: the same plan() over the recorded searches, with a paper position for leases.

Invariants:
1. A plan reads nothing later than its instant: no record of a host, no price, no event.
2. The real side and the paper side are counted over the same span, by the same metering.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from agent.decide.accounting import meter
from agent.decide.deadline import deadline_progress
from agent.decide.limits.limits import Limits
from agent.decide.paper import shadow
from agent.decide.paper.shadow import Shadow
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.gpu import GpuModel
from agent.domain.market.market_rules import ASSUMED
from agent.domain.market.offer import Offer
from agent.domain.money import Usd
from agent.domain.record.lease import LeaseState
from agent.domain.record.shadow_account import Counted
from agent.domain.work.decision import Hold
from agent.domain.work.workload import Workload
from agent.lab.traces.ledger_history import History, Moment
from agent.ledger.tables.event_rows import INTERRUPTED
from agent.markets import registered_markets

STEP = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Side:
    """The figures of one side: money, paid time, interruptions, and decisions by kind."""

    counted: Counted
    interruptions: int
    rents: int
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One workload over a span: the real side and the strategy's paper side, with the number of `plans`."""

    workload: str
    strategy: str
    since: datetime
    until: datetime
    actual: Side
    paper: Side
    plans: int


def replay(history: History, work: Workload, chosen: Tuned, caps: Limits, step: timedelta = STEP) -> Replayed | None:
    """Return the replay of a workload under a strategy, or None if the ledger has no searches."""
    span = history.span
    if span is None:
        return None
    since, until = span[0], min(span[1], history.done.get(work.name, span[1]))
    paper_run = Shadow(work.name, chosen.name, since, learns=True)
    kinds: Counter[str] = Counter()
    typical: dict[tuple[GpuModel, int], float] = {}
    plans = 0
    for moment in history.moments(step):
        if moment.now > until:
            break
        fleet = _fleet(work, moment, since, plans)
        typical = deadline_progress.typical(typical, fleet)
        done = shadow.step(paper_run, msgspec.structs.replace(fleet, typical=typical), chosen, caps)
        plans += 1
        kinds += (
            Counter(type(each).__name__.lower() for each in done.news if not isinstance(each, Hold)) if done else {}
        )
    tally, owed = paper_run.tally, meter.outstanding(paper_run.book.open(), until)
    counted = Counted(Usd(tally.spent) + owed, tally.paid, max(tally.useful, 0), tally.lost)
    paper = Side(counted, tally.interruptions, tally.rents, {str(kind): count for kind, count in kinds.items()})
    return Replayed(work.name, chosen.name, since, until, _actual(history, work.name, since, until), paper, plans)


def _fleet(work: Workload, moment: Moment, since: datetime, number: int) -> Fleet:
    by_market: dict[str, list[Offer]] = {name: [] for name in work.markets}
    for offer in moment.offers:
        by_market.setdefault(offer.market, []).append(offer)
    for lease in moment.leases:
        by_market.setdefault(lease.market, [])
    elapsed = (moment.now - since).total_seconds()
    known = registered_markets.names()
    views = {
        name: MarketView(
            market=name,
            listed_at=moment.now,
            listed_monotonic=elapsed,
            is_fresh=True,
            listings=number + 1,
            is_key_proven=True,
            offers=tuple(offers),
            rules=registered_markets.record(name).rules if name in known else ASSUMED,
        )
        for name, offers in by_market.items()
    }
    return Fleet(
        fleet_id="replay",
        now=moment.now,
        monotonic=elapsed,
        started_at=since,
        workloads=(work,),
        markets=views,
        # A lease that is being released, or a foreign one, is no evidence of a floor.
        leases=tuple(lease for lease in moment.leases if lease.state is not LeaseState.RELEASING),
        starts=moment.starts,
    )


def _actual(history: History, workload: str, since: datetime, until: datetime) -> Side:
    lines = [line for line in history.lines if line.workload == workload and since.date() <= line.day <= until.date()]
    mine = [lease for lease in history.leases if lease.slot.workload == workload]
    owed = meter.outstanding((lease for lease in mine if lease.is_open), until)
    happened = [
        event
        for events in history.events.values()
        for event in events
        if event.workload == workload and since <= event.at <= until
    ]
    counted = Counted(
        Usd(sum(line.amount.micros for line in lines)) + owed,
        sum(line.paid for line in lines),
        sum(line.useful for line in lines),
        sum(line.lost for line in lines),
    )
    rents = [lease for lease in mine if since <= lease.opened_at <= until]
    kinds = Counter(event.kind for event in happened)
    return Side(counted, kinds[INTERRUPTED], len(rents), {str(kind): count for kind, count in kinds.items()})
