"""The metered rate of a lease: the listed one, but not below the agreed one (rule 21).

The agreed rate is the bid if the market charges the bid, and on demand the rate at the time of the rent. A listed rate
below the agreed one, or more than `MOST_RISE` times it, is doubted. It is metered only after further listings and a
look by id agree.

Invariants:
1. A doubted low rate never lowers the count, and a doubted high rate never raises it, before it is confirmed.
2. The ledger keeps the looks at a doubted rate with the lease, so that a restart forgets none.
3. A rise is owed from the last look that showed the agreed rate, restart or not, since nobody saw when the rate rose.
   It is owed for the GPU time metered at the lower rate since then, even if the lease has stopped meanwhile.
4. While listed rates below the agreed one change, the doubt goes on, and the highest of them is believed: a price that
   moves often is followed at last, and one wrong price among them lowers nothing. While rates that rose too far change,
   it goes on too, and the lowest of them is believed; the rest is owed from the same look on.
5. A rise of up to `QUICK_RISE` is also owed if it can no longer be confirmed, because the lease ends or our own bid
   replaces the rate first. A higher rise is more likely a wrong price.
6. A row whose price could not be read neither ends nor furthers a doubt, and is no look at the agreed rate. What was
   adopted by such a row has no agreed rate: the first price that is read counts for its whole time.
7. Where the price paid is not the bid, the listed price is metered, whether it rose or fell. Only one above our limit
   is doubted, and believed it counts at the limit: no winner pays more than that. What is not metered yet counts by
   the periods of the bill, where it was read. A rise that the bill dates is owed since then, for what was metered.
8. Where an instance keeps its price, a fall is never believed once a listing has shown the agreed rate.
9. On demand, the agreed rate of a rent is its offer's ask, which may be wrong. A lower rate that every listing showed
   since the readback, on both surfaces of a market that has two, needs the listings and the look by id alone.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from agent.decide.accounting import meter
from agent.decide.facts import Alert, LeaseChanged
from agent.decide.reconcile import readback
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance
from agent.domain.market.tenure import Tenure
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
DATED = timedelta(minutes=5)
"""How far from the last look at the old price a bill may date a rise."""
FIRST_LOOK = timedelta(minutes=1)
"""A fall that is doubted since so soon after the readback was listed from the start: the agreed rate never was."""
TOLERANCE = 0.005
"""Share of the agreed rate by which a listed one may be lower: markets round, and subtract the disk from a sum."""


@dataclass(frozen=True, slots=True)
class Rise:
    """A rise, and its addition to each hour that was metered at the lower rate since it may have begun."""

    held: Lease
    more: UsdPerHour
    since: datetime
    is_billed: bool = False
    """Whether the rest, which is not metered yet, is on the bill."""

    def owed(self, charges: Sequence[meter.Charge], until: datetime) -> tuple[meter.Charge, ...]:
        """Return the rise's own charges; `charges` are those since the lease was last metered, up to `until`."""
        metered = (self.held.accrued_until - self.since).total_seconds()
        if self.is_billed:
            until = self.held.accrued_until
        else:
            metered += _gpu_seconds(charges)
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


def settle(fleet: Fleet, view: MarketView, lease: Lease, row: Instance, previous: datetime) -> Rated:
    """Return `lease` and `row` at the metered rate; `previous` is when the lease was last seen before."""
    if lease.bid_limit is not None:
        return _under_limit(fleet, view, lease, row, _since(lease, previous))
    highest = max((lease.agreed, *_bids_in_doubt(fleet, lease)))
    since = _since(lease, previous)
    shown_at = _shown_at(lease, since)
    if "gpu_rate" in row.unread:
        unseen = replace(lease, agreed_rate=lease.agreed, agreed_until=lease.agreed_until or since)
        return _at(unseen, row, max(lease.gpu_rate, highest), since)
    if _is_first_price(fleet, lease, row):
        return _at(_without_doubt(replace(lease, agreed_rate=row.gpu_rate)), row, row.gpu_rate, shown_at)
    if _is_accepted(fleet, view, lease, row):
        rate = row.gpu_rate if _is_known(fleet, view, lease, row) else _believed_rate(lease, _rows(view, lease))
        believed = _without_doubt(replace(lease, agreed_rate=rate))
        if row.gpu_rate > rate and not _is_plausible(believed, row):
            return _at(_doubted(fleet, replace(believed, agreed_until=shown_at), row, since), row, rate, shown_at)
        return _at(believed, row, max(rate, row.gpu_rate) if row.gpu_rate > lease.agreed else rate, shown_at)
    if _is_plausible(lease, row):
        rate = max(row.gpu_rate, highest) if highest > lease.agreed else row.gpu_rate
        kept = lease if rate == lease.gpu_rate else replace(lease, agreed_rate=lease.agreed)
        return _at(_without_doubt(kept), row, rate, shown_at if rate == row.gpu_rate else since)
    return _at(_doubted(fleet, lease, row, since), row, max(lease.gpu_rate, highest), since)


def _under_limit(fleet: Fleet, view: MarketView, lease: Lease, row: Instance, since: datetime) -> Rated:
    """Return `lease` and `row` where the price paid is not the bid: at the price of the row, never at the limit.

    A row that bills no GPU shows no price that is paid.
    """
    shown_at = _shown_at(lease, since)
    if not row.bills_gpu:
        return Rated(lease, replace(row, gpu_rate=lease.gpu_rate))
    if "gpu_rate" in row.unread:
        unseen = lease if row.bill is not None else replace(lease, agreed_until=lease.agreed_until or since)
        return Rated(unseen, replace(row, gpu_rate=lease.gpu_rate))
    if not _is_plausible(lease, row) and not _is_accepted(fleet, view, lease, row):
        return Rated(_doubted(fleet, lease, row, since), replace(row, gpu_rate=lease.gpu_rate, bill=None))
    believed = replace(_without_doubt(lease), agreed_rate=None)
    row = replace(row, gpu_rate=min(row.gpu_rate, max(lease.gpu_rate, lease.bid)))
    if lease.bills is not Bills.GPU_AND_DISK:
        # What has run since the last look was never paid at the expected price.
        return Rated(replace(believed, gpu_rate=row.gpu_rate), row)
    rated = _at(believed, row, row.gpu_rate, _risen_at(lease, row, shown_at))
    if rated.rise is None or row.bill is None:
        return rated
    return dataclasses.replace(rated, rise=dataclasses.replace(rated.rise, is_billed=True))


def _risen_at(lease: Lease, row: Instance, shown_at: datetime) -> datetime:
    """Return since when a price that has risen is owed: since its bill has it, or the last look at the old price.

    A bill that has it for much longer is not believed, since looks have shown the other price. After a longer stretch
    without a look other prices may have come between, so all of it is owed; a bill by periods has those.
    """
    at = row.price_since
    if at is None or lease.agreed_until is not None or shown_at - at > DATED:
        return shown_at
    if at - shown_at > DATED and row.bill is None:
        return shown_at
    return max(at, lease.opened_at)


def agreed_until(lease: Lease, charges: Sequence[meter.Charge], until: datetime) -> datetime | None:
    """Return the new `agreed_until` of a lease metered up to `until`, moved forward by time without a billed GPU."""
    if lease.agreed_until is None:
        return None
    return until - (lease.accrued_until - lease.agreed_until) - timedelta(seconds=_gpu_seconds(charges))


def at_end(lease: Lease, charges: Sequence[meter.Charge], until: datetime) -> tuple[meter.Charge, ...]:
    """Return the charges of a rise still doubted at its lease's end; `charges` are the last ones, up to `until`."""
    rate = lease.doubted_rate
    if rate is None or not lease.gpu_rate < rate <= lease.agreed.scaled(QUICK_RISE):
        return ()
    return Rise(lease, rate - lease.gpu_rate, lease.agreed_until or lease.accrued_until).owed(charges, until)


def in_doubt(fleet: Fleet, lease: Lease, since: datetime | None = None) -> Rise | None:
    """Return the rise to a higher bid of ours in doubt, which may be in force; it is owed from the last metering.

    `since` is the last look at a lease that an order of ours has metered since.
    """
    rate = max((lease.gpu_rate, *_bids_in_doubt(fleet, lease)))
    since = lease.accrued_until if since is None else min(since, lease.accrued_until)
    return Rise(lease, rate - lease.gpu_rate, since) if rate > lease.gpu_rate else None


def unlisted_end(
    fleet: Fleet, lease: Lease, charges: Sequence[meter.Charge], last_seen: datetime, until: datetime
) -> tuple[meter.Charge, ...]:
    """Return the charges of a rise that no listing confirmed before its lease's end at `until`, doubted or our own bid.

    `charges` are the last ones of the lease, up to `until`; it was last listed at `last_seen`.
    """
    own = in_doubt(fleet, lease, last_seen)
    return at_end(lease, charges, until) if own is None else own.owed(charges, until)


def with_rise(fact: LeaseChanged, rise: Rise | None) -> LeaseChanged:
    """Return a change with the charges of a rise besides its own."""
    if rise is None:
        return fact
    return dataclasses.replace(fact, charges=(*rise.owed(fact.charges, fact.after.accrued_until), *fact.charges))


def is_absurd(agreed: UsdPerHour, row: Instance) -> bool:
    """Return whether a listed rate is so far above the agreed one that listings alone do not confirm it."""
    return bool(agreed.micros) and row.gpu_rate > agreed.scaled(QUICK_RISE)


def unconfirmed(fleet: Fleet, view: MarketView, leases: Iterable[Lease]) -> frozenset[str]:
    """Return the ids of instances whose doubted rate was listed often enough, so that a look by id now decides."""
    return frozenset(
        lease.instance_id
        for lease in leases
        if lease.instance_id not in view.looked_up
        and any(
            _is_listed_enough(fleet, lease, row)
            for row in _rows(view, lease)
            if not _is_plausible(lease, row) and not _is_known(fleet, view, lease, row)
        )
    )


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each lease whose listed rate differs from the agreed one."""
    for lease in fleet.leases:
        view = fleet.markets.get(lease.market)
        if not lease.is_open or view is None or not view.is_fresh:
            continue
        for row in _rows(view, lease):
            if not _is_plausible(lease, row) and not _is_known(fleet, view, lease, row):
                agreed = (
                    f"agreed {lease.agreed}" if lease.bid_limit is None else f"above its limit of {lease.bid_limit}"
                )
                until = "until further listings and a look by id agree"
                if _is_kept(fleet, lease, row.gpu_rate):
                    until = "since no price changes there after the rent"
                sentence = (
                    f"{lease.market} lists {lease.lease_id} ({lease.slot}) at {row.gpu_rate}, {agreed}; "
                    f"it counts at {max(lease.gpu_rate, lease.agreed)} {until}; compare it with the market's bill"
                )
                which = "fall" if _is_fall(lease, row.gpu_rate) else "rise"
                yield Alert(EventKind.ALERT_RATE_DOUBTED, f"{lease.lease_id}@{which}", sentence)
                break


def _rows(view: MarketView, lease: Lease) -> Iterator[Instance]:
    return (row for row in view.instances if row.instance_id == lease.instance_id)


def _bids_in_doubt(fleet: Fleet, lease: Lease) -> Iterator[UsdPerHour]:
    """Yield the bids that orders without a clear answer may have set."""
    for intent in fleet.intents:
        is_out = intent.state in {IntentState.SENT, IntentState.IN_DOUBT}
        if (
            is_out
            and lease.bid_limit is None
            and intent.kind is IntentKind.REBID
            and intent.lease_id == lease.lease_id
            and intent.price is not None
        ):
            yield intent.price


def _is_fall(lease: Lease, rate: UsdPerHour) -> bool:
    is_lower = rate.micros < lease.agreed.micros * (1 - TOLERANCE) - readback.PRICE_STEP.micros
    return is_lower and lease.bid_limit is None


def _is_plausible(lease: Lease, row: Instance) -> bool:
    if lease.bid_limit is not None:
        # No winner pays more than its limit. A limit that was just lowered counts from the next auction on.
        return row.gpu_rate <= max(lease.gpu_rate, lease.bid_limit + readback.PRICE_STEP)
    return not _is_fall(lease, row.gpu_rate) and row.gpu_rate.micros <= lease.agreed.micros * MOST_RISE


def _is_first_price(fleet: Fleet, lease: Lease, row: Instance) -> bool:
    """Return whether a row is the first with a price of what was adopted, within what its workload may cost."""
    if lease.agreed.micros or lease.agreed_until is None:
        return False
    work = fleet.workload(lease.slot.workload)
    return work is None or row.gpu_rate <= work.price_of(row.gpu)


def _is_far_rise(lease: Lease, rate: UsdPerHour) -> bool:
    return lease.bid_limit is None and rate.micros > lease.agreed.micros * MOST_RISE


def _is_still_doubted(lease: Lease, rate: UsdPerHour) -> bool:
    """Return whether a listed rate belongs to the present doubt: both rates fell, or both rose too far."""
    was = lease.doubted_rate
    if was is None or was == rate:
        return was is not None
    return (_is_fall(lease, was) and _is_fall(lease, rate)) or (_is_far_rise(lease, was) and _is_far_rise(lease, rate))


def _believed_rate(lease: Lease, rows: Iterable[Instance]) -> UsdPerHour:
    """Return the rate that all listings of the present doubt, with these rows, show at least: of falls the highest."""
    listed = [row.gpu_rate for row in rows] + ([] if lease.doubted_rate is None else [lease.doubted_rate])
    return min(listed) if all(_is_far_rise(lease, rate) for rate in listed) else max(listed)


def _is_known(fleet: Fleet, view: MarketView, lease: Lease, row: Instance) -> bool:
    """Return whether we ordered the listed rate, or the host announced it."""
    announced = (
        rise.new_rate.micros * lease.gpus
        for rise in view.rises
        if rise.instance_id == lease.instance_id and rise.new_rate is not None
    )
    is_announced = any(abs(rate - row.gpu_rate.micros) <= readback.PRICE_STEP.micros for rate in announced)
    return row.gpu_rate in _bids_in_doubt(fleet, lease) or (is_announced and row.gpu_rate > lease.agreed)


def _is_accepted(fleet: Fleet, view: MarketView, lease: Lease, row: Instance) -> bool:
    if _is_known(fleet, view, lease, row):
        return True
    agree = all(_is_still_doubted(lease, each.gpu_rate) for each in _rows(view, lease))
    is_looked_up = lease.instance_id in view.looked_up and agree
    return is_looked_up and not _is_plausible(lease, row) and _is_listed_enough(fleet, lease, row)


def _is_listed_enough(fleet: Fleet, lease: Lease, row: Instance) -> bool:
    """Return whether the listings so far are enough for a look by id."""
    if lease.doubted_since is None or lease.doubted_listings < FURTHER_LISTINGS:
        return False
    if not _is_still_doubted(lease, row.gpu_rate) or _is_kept(fleet, lease, row.gpu_rate):
        return False
    is_quick = lease.agreed < _believed_rate(lease, (row,)) <= lease.agreed.scaled(QUICK_RISE)
    return is_quick or _is_below_ask(lease, row) or fleet.now - lease.doubted_since >= PATIENCE


def _is_below_ask(lease: Lease, row: Instance) -> bool:
    """Return whether two surfaces show a rent on demand below its offer's ask, as since the readback."""
    is_ordered = lease.tenure is Tenure.ON_DEMAND and bool(lease.intent_id) and row.is_rate_shown_twice
    if not is_ordered or not _is_fall(lease, row.gpu_rate):
        return False
    shown_at, since = lease.read_back_at, lease.doubted_since
    return shown_at is not None and since is not None and since - shown_at <= FIRST_LOOK


def _is_kept(fleet: Fleet, lease: Lease, rate: UsdPerHour) -> bool:
    """Return whether a listed rate fell where an instance keeps its price, after a listing showed the ordered one.

    The market may have got an instance for less than it had offered; then no listing ever showed the agreed rate.
    """
    if not fleet.rules_of(lease.market).keeps_price or not lease.intent_id or not _is_fall(lease, rate):
        return False
    shown_at, since = lease.read_back_at, lease.doubted_since or fleet.now
    return shown_at is not None and since - shown_at > FIRST_LOOK


def _since(lease: Lease, previous: datetime) -> datetime:
    """Return the time from which the rate of this look may have been charged.

    Only a lease that an order of ours ended is metered beyond the last look, and it may have run in that time.
    """
    return previous if lease.bills is Bills.GPU_AND_DISK else min(previous, lease.accrued_until)


def _shown_at(lease: Lease, since: datetime) -> datetime:
    """Return when a look last showed the agreed rate or less: a row without a price, or at more, is none."""
    is_fall = lease.doubted_rate is not None and _is_fall(lease, lease.doubted_rate)
    return since if lease.agreed_until is None or is_fall else lease.agreed_until


def _doubted(fleet: Fleet, lease: Lease, row: Instance, since: datetime) -> Lease:
    if not _is_still_doubted(lease, row.gpu_rate):
        shown = replace(lease, agreed_rate=lease.agreed, agreed_until=_shown_at(lease, since))
        return replace(shown, doubted_rate=row.gpu_rate, doubted_since=fleet.now, doubted_listings=1)
    lease = replace(lease, agreed_rate=lease.agreed, agreed_until=lease.agreed_until or since)
    listings = min(lease.doubted_listings + 1, FURTHER_LISTINGS + 1)
    return replace(lease, doubted_rate=_believed_rate(lease, [row]), doubted_listings=listings)


def _without_doubt(lease: Lease) -> Lease:
    is_doubted = lease.doubted_rate is not None or lease.doubted_since is not None or lease.doubted_listings
    if not is_doubted and lease.agreed_until is None:
        return lease
    return replace(lease, doubted_rate=None, agreed_until=None, doubted_since=None, doubted_listings=0)


def _at(lease: Lease, row: Instance, rate: UsdPerHour, since: datetime) -> Rated:
    rise = Rise(lease, rate - lease.gpu_rate, since) if rate > lease.gpu_rate else None
    return Rated(lease, msgspec.structs.replace(row, gpu_rate=rate), rise)


def _gpu_seconds(charges: Sequence[meter.Charge]) -> float:
    return sum(charge.running_seconds for charge in charges)
