"""The metered rate of a lease: the listed one, but not below the agreed one (rule 21).

The agreed rate is the bid if the market charges the bid, and on demand the rate at the time of the rent. A listed rate
below the agreed one, or more than `MOST_RISE` times it, is doubted. It is metered only after further listings and a
look by id agree.

Invariants:
1. A doubted low rate never lowers the count, and a doubted high rate never raises it, before it is confirmed.
2. The ledger keeps the looks at a doubted rate with the lease, so that a restart forgets none.
3. A rise is owed from the last look that showed the agreed rate, restart or not, since nobody saw when the rate rose.
   It is owed for the GPU time metered at the lower rate since then, even if the lease has stopped meanwhile.
4. A rise of up to `QUICK_RISE` is also owed if it can no longer be confirmed, because the lease ends or our own bid
   replaces the rate first. A higher rise is more likely a wrong price.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from agent.decide.accounting import meter
from agent.decide.facts import Alert
from agent.decide.reconcile import readback
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance
from agent.domain.money import UsdPerHour
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease

MOST_RISE = 1.5
"""A rate up to this multiple of the agreed one is metered as listed; a higher one is doubted."""
QUICK_RISE = 3.0
"""A rise of up to this multiple needs only the further listings and the look by id: it is likely, and cheap to
believe."""
FURTHER_LISTINGS = 2
"""How many listings after the first must show a doubted rate."""
PATIENCE = timedelta(minutes=15)
"""How long a fall, or a rise beyond `QUICK_RISE`, must be listed, since markets have shown wrong prices for ten
minutes."""
TOLERANCE = 0.005
"""Share of the agreed rate by which a listed one may be lower: markets round, and subtract the disk from a sum."""


@dataclass(frozen=True, slots=True)
class Rise:
    """A rise, and its addition to each hour that was metered at the lower rate since it may have begun."""

    held: Lease
    more: UsdPerHour
    since: datetime

    def owed(self, charges: Sequence[meter.Charge], until: datetime) -> tuple[meter.Charge, ...]:
        """Return the rise's own charges; `charges` are those since the lease was last metered, up to `until`."""
        metered = (self.held.accrued_until - self.since).total_seconds() + _gpu_seconds(charges)
        return tuple(
            meter.Charge(self.held.lease_id, start.date(), gpu=self.more.over((end - start).total_seconds()))
            for start, end in meter.days(until - timedelta(seconds=max(metered, 0.0)), until)
        )


@dataclass(frozen=True, slots=True)
class Rated:
    """A lease and its row with the metered rate, and the rise if the rate has risen."""

    lease: Lease
    row: Instance
    rise: Rise | None = None


def settle(fleet: Fleet, view: MarketView, held: Lease, row: Instance, previous: datetime) -> Rated:
    """Return `held` and `row` at the metered rate; `previous` is when the lease was last seen before."""
    highest = max((held.agreed, *_bids_in_doubt(fleet, held)))
    since = _since(held, previous)
    if _is_accepted(fleet, view, held, row):
        believed = _without_doubt(replace(held, agreed_rate=row.gpu_rate))
        return _at(believed, row, row.gpu_rate, held.agreed_until or since)
    if _is_plausible(held, row):
        rate = max(row.gpu_rate, highest) if highest > held.agreed else row.gpu_rate
        kept = held if rate == held.gpu_rate else replace(held, agreed_rate=held.agreed)
        return _at(_without_doubt(kept), row, rate, since)
    return _at(_doubted(fleet, held, row, since), row, max(held.gpu_rate, highest), since)


def agreed_until(held: Lease, charges: Sequence[meter.Charge], until: datetime) -> datetime | None:
    """Return the new `agreed_until` of a lease metered up to `until`, moved forward by time without a billed GPU."""
    if held.agreed_until is None:
        return None
    return until - (held.accrued_until - held.agreed_until) - timedelta(seconds=_gpu_seconds(charges))


def at_end(held: Lease, charges: Sequence[meter.Charge], until: datetime) -> tuple[meter.Charge, ...]:
    """Return the charges of a rise still doubted at its lease's end; `charges` are the last ones, up to `until`."""
    rate = held.doubted_rate
    if rate is None or not held.gpu_rate < rate <= held.agreed.scaled(QUICK_RISE):
        return ()
    return Rise(held, rate - held.gpu_rate, held.agreed_until or held.accrued_until).owed(charges, until)


def is_absurd(agreed: UsdPerHour, row: Instance) -> bool:
    """Return whether a listed rate is so far above the agreed one that listings alone do not confirm it."""
    return bool(agreed.micros) and row.gpu_rate > agreed.scaled(QUICK_RISE)


def unconfirmed(fleet: Fleet, view: MarketView, leases: Iterable[Lease]) -> frozenset[str]:
    """Return the ids of instances whose doubted rate was listed often enough, so that a look by id now decides."""
    return frozenset(
        held.instance_id
        for held in leases
        if held.instance_id not in view.looked_up
        and any(
            _is_listed_enough(fleet, held, row)
            for row in _rows(view, held)
            if not _is_plausible(held, row) and not _is_known(fleet, view, held, row)
        )
    )


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each lease whose listed rate differs from the agreed one."""
    for held in fleet.leases:
        view = fleet.markets.get(held.market)
        if not held.is_open or view is None or not view.is_fresh:
            continue
        for row in _rows(view, held):
            if not _is_plausible(held, row) and not _is_known(fleet, view, held, row):
                sentence = (
                    f"{held.market} lists {held.lease_id} ({held.slot}) at {row.gpu_rate}, agreed {held.agreed}; it "
                    f"counts at {max(held.gpu_rate, held.agreed)} until further listings and a look by id agree; "
                    "compare it with the market's bill"
                )
                yield Alert(EventKind.ALERT_RATE_DOUBTED, f"{held.lease_id}@{row.gpu_rate.micros}", sentence)
                break


def _rows(view: MarketView, held: Lease) -> Iterator[Instance]:
    return (row for row in view.instances if row.instance_id == held.instance_id)


def _bids_in_doubt(fleet: Fleet, held: Lease) -> Iterator[UsdPerHour]:
    """Yield the bids that orders without a clear answer may have set."""
    for intent in fleet.intents:
        is_out = intent.state in {IntentState.SENT, IntentState.IN_DOUBT}
        if is_out and intent.kind is IntentKind.REBID and intent.lease_id == held.lease_id and intent.price is not None:
            yield intent.price


def _is_plausible(held: Lease, row: Instance) -> bool:
    least = held.agreed.micros * (1 - TOLERANCE) - readback.PRICE_STEP.micros
    return least <= row.gpu_rate.micros <= held.agreed.micros * MOST_RISE


def _is_known(fleet: Fleet, view: MarketView, held: Lease, row: Instance) -> bool:
    """Return whether we ordered the listed rate, or the host announced it."""
    announced = (
        rise.new_rate.micros * held.gpus
        for rise in view.rises
        if rise.instance_id == held.instance_id and rise.new_rate is not None
    )
    is_announced = any(abs(rate - row.gpu_rate.micros) <= readback.PRICE_STEP.micros for rate in announced)
    return row.gpu_rate in _bids_in_doubt(fleet, held) or (is_announced and row.gpu_rate > held.agreed)


def _is_accepted(fleet: Fleet, view: MarketView, held: Lease, row: Instance) -> bool:
    if _is_known(fleet, view, held, row):
        return True
    agree = all(each.gpu_rate == row.gpu_rate for each in _rows(view, held))
    is_looked_up = held.instance_id in view.looked_up and agree
    return is_looked_up and not _is_plausible(held, row) and _is_listed_enough(fleet, held, row)


def _is_listed_enough(fleet: Fleet, held: Lease, row: Instance) -> bool:
    """Return whether the listings so far are enough for a look by id."""
    if held.doubted_rate != row.gpu_rate or held.doubted_since is None or held.doubted_listings < FURTHER_LISTINGS:
        return False
    is_quick = held.agreed < row.gpu_rate <= held.agreed.scaled(QUICK_RISE)
    return is_quick or fleet.now - held.doubted_since >= PATIENCE


def _since(held: Lease, previous: datetime) -> datetime:
    """Return the time from which the rate of this look may have been charged.

    Only a lease that an order of ours ended is metered beyond the last look, and it may have run in that time.
    """
    return previous if held.bills is Bills.GPU_AND_DISK else min(previous, held.accrued_until)


def _doubted(fleet: Fleet, held: Lease, row: Instance, since: datetime) -> Lease:
    held = replace(held, agreed_rate=held.agreed, agreed_until=held.agreed_until or since)
    if held.doubted_rate != row.gpu_rate:
        return replace(held, doubted_rate=row.gpu_rate, doubted_since=fleet.now, doubted_listings=1)
    return replace(held, doubted_listings=min(held.doubted_listings + 1, FURTHER_LISTINGS + 1))


def _without_doubt(held: Lease) -> Lease:
    if held.doubted_rate is None and held.doubted_since is None and not held.doubted_listings:
        return held
    return replace(held, doubted_rate=None, agreed_until=None, doubted_since=None, doubted_listings=0)


def _at(held: Lease, row: Instance, rate: UsdPerHour, since: datetime) -> Rated:
    rise = Rise(held, rate - held.gpu_rate, since) if rate > held.gpu_rate else None
    return Rated(held, msgspec.structs.replace(row, gpu_rate=rate), rise)


def _gpu_seconds(charges: Sequence[meter.Charge]) -> float:
    return sum(charge.running_seconds for charge in charges)
