"""Unaccounted costs: instances of ours without a lease, and leftovers of a kill.

Invariants:
1. Every cycle derives all of it again from the listing and the ledger. Nothing is reported once and forgotten.
2. Only the count of listings is kept in memory, and a restart begins it again. The sentence is then at most three
   listings late, and it comes, because the instance is still listed. A count that began at three would wake a person
   for every rent that was under way when the daemon stopped.
3. A market that does not answer does not change the count.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from agent.decide.operators.notices import Notice
from agent.domain import span_text
from agent.domain.fleet import MarketView
from agent.domain.market.instance import Instance
from agent.domain.money import UsdPerHour, total_rate
from agent.domain.record import hold
from agent.domain.record.hold import DISKS, EVERYTHING, Holds, OperatorHold, Word
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Bills, Lease

LISTINGS = 3
"""After this many complete listings in a row, an instance of ours without a lease is reported to a person."""
KILL_PATIENCE = timedelta(minutes=5)
"""After this time a kill should have nothing left that bills."""
MOST_NAMED = 5
"""The most ids in a sentence; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Unaccounted:
    """An instance with our label but no open lease or doubt, and the number of listings in a row that showed it."""

    market: str
    instance_id: str
    rate: UsdPerHour
    listings: int


@dataclass(frozen=True, slots=True)
class Remaining:
    """A lease or doubt that bills, or may bill, under a kill that was given at `since`."""

    name: str
    rate: UsdPerHour
    since: datetime


@dataclass(frozen=True, slots=True)
class UnaccountedCosts:
    """The findings of one cycle. `first` is the count of listings at which each unaccounted instance was first seen."""

    unaccounted: tuple[Unaccounted, ...] = ()
    remaining: tuple[Remaining, ...] = ()
    first: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def killed_at(self) -> datetime | None:
        """The time of the oldest kill with a leftover, or None."""
        return min((each.since for each in self.remaining), default=None)

    def listings(self, market: str) -> int:
        """Return in how many listings in a row a market has shown an unaccounted instance."""
        return max((each.listings for each in self.unaccounted if each.market == market), default=0)

    def count(self, market: str) -> int:
        """Return how many unaccounted instances a market shows."""
        return sum(each.market == market for each in self.unaccounted)


class Known(Protocol):
    """The ledger's knowledge; a fleet has it too."""

    @property
    def leases(self) -> tuple[Lease, ...]:
        """The open leases."""
        ...

    @property
    def intents(self) -> tuple[Intent, ...]:
        """The open intents."""
        ...

    @property
    def holds(self) -> tuple[OperatorHold, ...]:
        """The holds, kills among them."""
        ...


def findings(
    before: UnaccountedCosts, fleet_id: str, views: Sequence[MarketView], known: Known, now: datetime
) -> UnaccountedCosts:
    """Return the instances and leftovers that the last listings show and the ledger does not explain."""
    unknown = [(view, row) for view in views for row in _unknown(fleet_id, view, known)]
    first = {(view.market, row.instance_id): _first(before, view, row) for view, row in unknown}
    unaccounted = tuple(
        Unaccounted(
            view.market,
            row.instance_id,
            row.billing_rate,
            view.listings - first[view.market, row.instance_id] + 1,
        )
        for view, row in unknown
    )
    rows = {(view.market, row.instance_id): row for view in views for row in view.instances}
    left = (*remaining(known, now, rows), *_unkept(unaccounted, known.holds, now))
    return UnaccountedCosts(unaccounted, left, first)


def remaining(
    known: Known, now: datetime, rows: Mapping[tuple[str, str], Instance] | None = None
) -> Iterator[Remaining]:
    """Yield the leftovers of a kill: by the listing if it shows the instance, else by the ledger."""
    kills = hold.in_force((each for each in known.holds if each.word is Word.KILL), now)
    if not kills:
        return
    is_kept = (Word.KILL, DISKS) in kills
    everything = kills.get((Word.KILL, EVERYTHING))
    for lease in known.leases:
        kill = everything or _of_target(kills, lease)
        if kill is None or not lease.is_open:
            continue
        row = (rows or {}).get((lease.market, lease.instance_id))
        rate = row.billing_rate if row is not None else lease.billing_rate
        bills_gpu = row.bills_gpu if row is not None else lease.bills is Bills.GPU_AND_DISK
        if bills_gpu or (rate.micros > 0 and not (is_kept and kill is everything)):
            yield Remaining(lease.lease_id, rate, kill.since)
    for intent in known.intents if everything is not None else ():
        if intent.is_open and intent.kind.is_paying and not intent.lease_id and everything is not None:
            yield Remaining(f"the rent {intent.intent_id} in doubt", intent.rate, everything.since)


def notices(seen: UnaccountedCosts, now: datetime) -> Iterator[Notice]:
    """Yield a notice for each market with unaccounted instances, and one for a kill's leftovers."""
    for market in sorted({each.market for each in seen.unaccounted}):
        late = [each for each in seen.unaccounted if each.market == market and each.listings >= LISTINGS]
        if late:
            yield Notice(market, "unaccounted", _unaccounted(late))
    yield from after_kill(seen.remaining, now)


def after_kill(left: Iterable[Remaining], now: datetime) -> Iterator[Notice]:
    """Yield one notice about everything that still bills five minutes after its kill."""
    late = [each for each in left if now - each.since >= KILL_PATIENCE]
    if late:
        since = min(each.since for each in late)
        rate = total_rate(each.rate for each in late)
        sentence = (
            f"{_named([each.name for each in late])} still bill(s) {rate}, {span_text.minutes(now - since)} "
            "after the kill: gpubid tries again; end it in the market's console if that lasts"
        )
        yield Notice("daemon", "bills_after_kill", sentence)


def _unknown(fleet_id: str, view: MarketView, known: Known) -> Iterator[Instance]:
    """Yield each listed instance with our label that no open lease and no open intent of this market explains."""
    leased = {lease.instance_id for lease in known.leases if lease.is_open and lease.market == view.market}
    open_intents = {intent.intent_id for intent in known.intents if intent.is_open and intent.market == view.market}
    seen = set(leased)
    for row in view.instances:
        label = view.labels.get(row.instance_id)
        is_ours = label is not None and label.fleet_id == fleet_id
        if label is not None and is_ours and row.instance_id not in seen and label.intent_id not in open_intents:
            seen.add(row.instance_id)
            yield row


def _first(before: UnaccountedCosts, view: MarketView, row: Instance) -> int:
    return before.first.get((view.market, row.instance_id), view.listings)


def _unkept(found: Iterable[Unaccounted], holds: Iterable[OperatorHold], now: datetime) -> Iterator[Remaining]:
    """Yield the instances without a lease that bill under a kill of everything or of their market."""
    standing = hold.in_force(holds, now)
    for each in found:
        kill = standing.get((Word.KILL, EVERYTHING)) or standing.get((Word.KILL, hold.of_market(each.market)))
        if kill is not None and each.rate.micros > 0:
            yield Remaining(f"instance {each.instance_id}", each.rate, kill.since)


def _of_target(kills: Holds, lease: Lease) -> OperatorHold | None:
    found = (kills.get((Word.KILL, target)) for target in hold.including(lease))
    return next((kill for kill in found if kill is not None), None)


def _unaccounted(late: list[Unaccounted]) -> str:
    names = _named([f"instance {each.instance_id}" for each in late])
    return (
        f"{names} carry our label, bill {total_rate(each.rate for each in late)} and are in no lease, no doubt and no "
        f"recorded orphan since {max(each.listings for each in late)} listings: look with `gpubid ledger events`, and "
        "end it in the market's console if it does not appear in `gpubid fleet`"
    )


def _named(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
