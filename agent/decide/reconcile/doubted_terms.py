"""Terms of a lease that a listing changes too far: its disk's price, its limit, its contract's end, its traffic.

One wrong figure among these would cross a cap, or have a healthy lease left. The price of the GPUs has rules of its own
(`agreed_rate.py`).

Invariants:
1. A doubted term counts as it was known before, until further listings over `PATIENCE` agree; a fall of the disk's
   price needs the listings alone. While the listed values change, the doubt goes on, and the one nearest to the known
   value is believed.
2. A believed rise of the disk's price is owed from the first listing that showed it.
3. A believed limit counts, but our own is ordered again. Once the market has confirmed that order, a listing of the old
   limit is doubted anew.
4. Some terms are never believed: an end in the past of a contract that runs, and more traffic than a host's lines carry
   since the lease was opened.
5. A doubt lasts until the ledger has the believed value (rule 19). It is in the memory alone, so a restart begins it
   again: a wrong value never counts earlier.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import msgspec

from agent.decide.accounting import meter
from agent.decide.facts import Alert, LeaseChanged
from agent.decide.reconcile import readback, row_metering
from agent.decide.reconcile.agreed_rate import FURTHER_LISTINGS, MOST_RISE, PATIENCE
from agent.decide.reconcile.pass_memory import TermDoubt
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.money import UsdPerHour
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState

MOST_DISK_FACTOR = 3.0
"""A disk's price may change by this factor at once: some markets charge twice for a stopped one."""
SMALL_DISK_RATE = money.per_hour("0.05")
"""A change of a disk's price by less is believed at once."""
SOON = timedelta(hours=2)
"""An earlier end that is further away is believed at once: it has no consequence yet (`recovery.LEAVE_BEFORE`)."""
SAME_END = timedelta(minutes=1)
"""Ends that differ by less are the same."""
SMALL_TRAFFIC = money.usd("0.25")
"""Traffic since the last metering that costs less is believed at once."""
LEAST_LINE_MBPS = 10_000.0
"""The least speed that a host's lines may have, in megabits per second, whatever it advertises."""
_GB_OF_MEGABIT = 1 / 8000


class Term(Enum):
    """A term that may be doubted."""

    DISK_RISE = "disk_rise"
    DISK_FALL = "disk_fall"
    LIMIT = "limit"
    END = "end"
    TRAFFIC = "traffic"


@dataclass(frozen=True, slots=True)
class Settled:
    """A row with the terms that count, its doubts by term, and the charges of a rise that is believed now."""

    row: Instance
    doubts: Mapping[str, TermDoubt]
    owed: tuple[meter.Charge, ...] = ()


def settle(
    fleet: Fleet, lease: Lease, row: Instance, listed_at: datetime, so_far: Mapping[str, Mapping[str, TermDoubt]]
) -> Settled:
    """Return a row with its lease's known terms in the place of doubted ones; `so_far` has the doubts by lease."""
    before = so_far.get(lease.lease_id, {})
    changes = _changes(fleet, lease, row, listed_at)
    doubts = {term.value: _seen(_standing(term, lease, before), figure, listed_at) for term, figure in changes}
    settled = Settled(row, doubts)
    for name, doubt in doubts.items():
        term = Term(name)
        # A price that falls is cheap to believe, and the known one may be a wrong one that an adoption took over.
        is_long = term is Term.DISK_FALL or listed_at - doubt.since >= PATIENCE
        is_listed_enough = doubt.listings > FURTHER_LISTINGS and is_long
        is_believed = is_listed_enough and not _is_impossible(term, lease, row, listed_at)
        settled = (_believed if is_believed else _doubted)(settled, term, lease, doubt, listed_at)
    return settled


def with_owed(changes: Sequence[LeaseChanged], settled: Settled) -> list[LeaseChanged]:
    """Return changes with the charges of a believed rise before those of the last change, which has its price."""
    if not settled.owed or not changes:
        return list(changes)
    return [*changes[:-1], replace(changes[-1], charges=(*settled.owed, *changes[-1].charges))]


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each term of an open lease that its listing changes too far."""
    for lease in fleet.leases:
        view = fleet.markets.get(lease.market)
        row = view.instance(lease.instance_id) if view is not None and view.is_fresh else None
        if not lease.is_open or view is None or row is None or view.listed_at is None:
            continue
        for term, _ in _changes(fleet, lease, row, view.listed_at):
            sentence = (
                f"{lease.market} lists {lease.lease_id} ({lease.slot}) {_sentence(term, lease, row)}; this counts only "
                "after more listings over 15 minutes; compare it with the market's page"
            )
            yield Alert(EventKind.ALERT_RATE_DOUBTED, f"{lease.lease_id}@{term.value}", sentence)


def _changes(fleet: Fleet, lease: Lease, row: Instance, listed_at: datetime) -> Iterator[tuple[Term, float]]:
    """Yield each term that a row changes too far, with a figure that is the smaller the nearer it is to the known."""
    rate, known = row.disk_rate.micros, lease.disk_rate.micros
    if abs(rate - known) > SMALL_DISK_RATE.micros and not _is_other_disk(lease, row):
        # A disk that is stopped or starts may have another price.
        is_other_state = row_metering.state_of(lease, row) is not lease.state
        if rate > known * MOST_DISK_FACTOR:
            yield Term.DISK_RISE, float(rate)
        elif rate * MOST_DISK_FACTOR < known and not is_other_state:
            yield Term.DISK_FALL, -float(rate)
    if row.limit is not None and _is_far_limit(fleet, lease, row.limit):
        yield Term.LIMIT, float(row.limit.micros)
    if row.ends_at is not None and _is_sudden(lease, row.ends_at, listed_at):
        yield Term.END, -row.ends_at.timestamp()
    if row_metering.traffic_of(lease, row) > SMALL_TRAFFIC and _is_flood(lease, row, lease.accrued_until, listed_at):
        yield Term.TRAFFIC, row.traffic_down_gb + row.traffic_up_gb


def _is_far_limit(fleet: Fleet, lease: Lease, limit: UsdPerHour) -> bool:
    """Return whether a limit is far above the known one, and neither the readback nor an open order explains it."""
    is_fresh = not lease.has_run and lease.read_back_at is None
    if lease.bid_limit is None or is_fresh or limit <= lease.bid_limit.scaled(MOST_RISE):
        return False
    return not any(intent.lease_id == lease.lease_id and intent.kind is IntentKind.REBID for intent in fleet.intents)


def _is_other_disk(lease: Lease, row: Instance) -> bool:
    """Return whether a rent got another disk than ordered, so that its readback judges it."""
    is_fresh = lease.state is LeaseState.STARTING and not lease.has_run and lease.read_back_at is None
    return is_fresh and abs(row.disk_gb - lease.disk_gb) >= readback.DISK_STEP_GB


def _standing(term: Term, lease: Lease, before: Mapping[str, TermDoubt]) -> TermDoubt | None:
    """Return the doubt so far. It ends once the ledger has its value, and about a limit with our own order."""
    doubt = before.get(term.value)
    if doubt is None or _has(term, lease, doubt.nearest):
        return None
    is_over = term is Term.LIMIT and (lease.bid_since or lease.opened_at) > doubt.since
    return None if is_over else doubt


def _has(term: Term, lease: Lease, figure: float) -> bool:
    """Return whether a lease has the believed value of a doubt: what differs from it is doubted anew."""
    if term is Term.TRAFFIC:
        return False
    if term is Term.END:
        return lease.ends_at is not None and abs(-figure - lease.ends_at.timestamp()) < 1.0
    known = lease.bid_limit if term is Term.LIMIT else lease.disk_rate
    return known is not None and known.micros == round(abs(figure))


def _seen(doubt: TermDoubt | None, far: float, listed_at: datetime) -> TermDoubt:
    if doubt is None:
        return TermDoubt(listed_at, listed_at, 1, far)
    return TermDoubt(doubt.since, listed_at, doubt.listings + (doubt.seen_at != listed_at), min(doubt.nearest, far))


def _is_sudden(lease: Lease, ends_at: datetime, listed_at: datetime) -> bool:
    is_earlier = lease.ends_at is None or ends_at < lease.ends_at - SAME_END
    return is_earlier and ends_at < listed_at + SOON


def _is_flood(lease: Lease, row: Instance, since: datetime, until: datetime) -> bool:
    """Return whether the traffic that is not metered yet is more than a host's lines carry in a span."""
    seconds = max(0.0, (until - since).total_seconds())
    most_gb = max(LEAST_LINE_MBPS, 2 * row.inet_down_mbps) * _GB_OF_MEGABIT * seconds
    down, up = row.traffic_down_gb - lease.traffic_down_gb, row.traffic_up_gb - lease.traffic_up_gb
    return max(down, up) > most_gb


def _is_impossible(term: Term, lease: Lease, row: Instance, listed_at: datetime) -> bool:
    if term is Term.END:
        return row.state is InstanceState.RUNNING and row.ends_at is not None and row.ends_at <= listed_at
    return term is Term.TRAFFIC and _is_flood(lease, row, lease.opened_at, listed_at)


def _doubted(settled: Settled, term: Term, lease: Lease, _doubt: TermDoubt, _listed_at: datetime) -> Settled:
    """Return a row with the known value of a doubted term."""
    known: dict[str, Any]
    if term is Term.END:
        known = {"ends_at": lease.ends_at}
    elif term is Term.TRAFFIC:
        known = {"traffic_down_gb": lease.traffic_down_gb, "traffic_up_gb": lease.traffic_up_gb}
    elif term is Term.LIMIT:
        known = {"limit": lease.bid_limit}
    else:
        known = {"disk_rate": lease.disk_rate}
    return replace(settled, row=msgspec.structs.replace(settled.row, **known))


def _believed(settled: Settled, term: Term, lease: Lease, doubt: TermDoubt, listed_at: datetime) -> Settled:
    """Return a row with the believed value of a term, and the charges of a rise."""
    if term is Term.TRAFFIC:
        return settled
    if term is Term.END:
        ends_at = datetime.fromtimestamp(-doubt.nearest, UTC)
        return replace(settled, row=msgspec.structs.replace(settled.row, ends_at=ends_at))
    rate = UsdPerHour(round(abs(doubt.nearest)))
    if term is Term.LIMIT:
        return replace(settled, row=msgspec.structs.replace(settled.row, limit=rate))
    owed = _owed(lease, rate, doubt.since, listed_at) if term is Term.DISK_RISE else ()
    return replace(settled, row=msgspec.structs.replace(settled.row, disk_rate=rate), owed=owed)


def _owed(lease: Lease, rate: UsdPerHour, since: datetime, listed_at: datetime) -> tuple[meter.Charge, ...]:
    """Return the charges of a rise of the disk's price since a listing showed it first."""
    if lease.bills is Bills.NOTHING:
        return ()
    more = rate - lease.disk_rate
    return tuple(
        meter.Charge(lease.lease_id, start.date(), disk=more.over((end - start).total_seconds()))
        for start, end in meter.days(since, listed_at)
    )


def _sentence(term: Term, lease: Lease, row: Instance) -> str:
    if term is Term.END:
        known = "without an end" if lease.ends_at is None else f"until {lease.ends_at:%Y-%m-%d %H:%M} UTC"
        return f"with an end at {row.ends_at:%Y-%m-%d %H:%M} UTC, known {known}"
    if term is Term.TRAFFIC:
        return (
            f"with traffic of {row_metering.traffic_of(lease, row)} since the last metering, more than its line carries"
        )
    if term is Term.LIMIT:
        return f"with a limit of {row.limit}, known at {lease.bid_limit}"
    return f"with a disk at {row.disk_rate}, known at {lease.disk_rate}"
