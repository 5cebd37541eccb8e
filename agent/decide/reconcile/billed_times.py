"""When the billing of a lease changed: by the market's own record, else at the time that counts more.

Invariants:
1. Without a record, GPUs count from the look before the one that showed them billed, up to the look that showed them no
   longer billed. A record in the same cycle replaces that.
2. The state of the lease changes halfway between the two looks, so that the learned lengths of starts and stays have no
   such bias.
3. A start under way that no later look or record shows counts as done right after the last look. This includes a lease
   that was lost while the record could not be read. It includes the return of a silent host whose instance is gone, or
   stopped at the end of its contract or by its guard's switch: no record shows either. An end counts as soon as a
   listing tells it, even if the lease does not believe it yet.
4. A stopped lease that its market may have given back counts as running since the last look, where it was not listed
   for `UNSEEN` and an order of ours ends or pauses it, or it is listed as stopped and no record could be read.
5. Where a market bills what loads, an instance that was stopped before any listing showed it has billed since its rent.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from agent.decide.accounting import meter
from agent.decide.facts import Fact, LeaseChanged
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Cause, MarketEvent, MarketEventKind
from agent.domain.market.market_rules import ASSUMED, MarketRules
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work import kept_terms, sign_of_life

BILLED_AFTER = {
    MarketEventKind.OUTBID: Bills.DISK,
    MarketEventKind.BID_LOST: Bills.DISK,
    MarketEventKind.STOPPED: Bills.DISK,
    MarketEventKind.STOPPED_BY_MARKET: Bills.DISK,
    MarketEventKind.OFFLINE: Bills.NOTHING,
    MarketEventKind.STARTED: Bills.GPU_AND_DISK,
    MarketEventKind.RESUMED: Bills.GPU_AND_DISK,
}
"""The billing of a lease after an event of the market's record, by the kind of the event."""
LEFTOVER = "bid_too_low"
"""The end reason of a leftover: the stopped instance of a refused bid."""
UNSEEN = timedelta(minutes=2)
"""A lease that was last listed longer ago may have been given back since, when an order of ours ends it."""
GIVEN_BACK = frozenset({Cause.OUTBID, Cause.DISPLACED, Cause.UNKNOWN, Cause.OUT_OF_CREDIT})
"""Causes after which a market may start a stopped instance again."""
_BILLS_MORE = (Bills.NOTHING, Bills.DISK, Bills.GPU_AND_DISK)


@dataclass(frozen=True, slots=True)
class Turned:
    """The turns of the billing, in order, and when the lease came into its present state."""

    turns: tuple[meter.Turn, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Look:
    """The last sight of a lease in a recorded listing, and its market's record and rules."""

    at: datetime
    events: tuple[MarketEvent, ...] = ()
    rules: MarketRules = ASSUMED


def looks(fleet: Fleet, memory: Memory) -> dict[str, Look]:
    """Return the last look at each lease, by its id. A look that gave an unrecorded suspicion does not count."""
    found: dict[str, Look] = {}
    for lease in fleet.leases:
        doubted, view = memory.suspicions.get(lease.lease_id), fleet.markets.get(lease.market)
        seen_at = memory.last_seen.get(lease.lease_id, lease.accrued_until)
        if doubted is not None and lease.accrued_until < doubted.seen_at:
            seen_at = doubted.previous
        found[lease.lease_id] = Look(seen_at, view.events if view else (), fleet.rules_of(lease.market))
    return found


def wants_record(facts: Iterable[Fact]) -> bool:
    """Return whether the market's record may date a change. A lease lost while loading may have run before.

    A missing lease that is listed again may have stopped and started meanwhile.
    """
    changes = [fact for fact in facts if isinstance(fact, LeaseChanged)]
    is_back = any(change.before.state is LeaseState.MISSING and change.after.is_open for change in changes)
    return is_back or any(change.cause or change.before.bills is not change.after.bills for change in changes)


def recorded(lease: Lease, events: Iterable[MarketEvent], until: datetime) -> list[meter.Turn]:
    """Return the turns in the market's record during time that is not metered yet, oldest first."""
    return [
        (event.at, BILLED_AFTER[event.kind])
        for event in sorted(events, key=lambda event: event.at)
        if event.instance_id == lease.instance_id
        and event.kind in BILLED_AFTER
        and lease.accrued_until < event.at <= until
    ]


def to_the_end(lease: Lease, look: Look, until: datetime, *, is_ordered: bool = True) -> list[meter.Turn]:
    """Return the turns of a lease that ends at `until`, by an order of ours or not, and was not seen since `look`."""
    turned_at = _started_unrecorded(lease, look.at, recorded(lease, look.events, until))
    is_given_back = is_ordered and until - look.at > UNSEEN and _may_be_given_back(lease, look.rules)
    if not turned_at and (_is_starting(lease) or _is_silent(lease) or is_given_back):
        turned_at.append((min(max(look.at, lease.accrued_until), until), Bills.GPU_AND_DISK))
    return turned_at


def as_shown(view: MarketView, row: Instance) -> MarketView:
    """Return a view without the last recorded start of an instance that is still loading, since that start goes on."""
    events = [event for event in view.events if event.instance_id == row.instance_id and event.kind in BILLED_AFTER]
    last = max(events, key=lambda event: event.at, default=None)
    is_loading = row.state in {InstanceState.PENDING, InstanceState.LOADING} and not row.bills_gpu
    if last is None or not is_loading or BILLED_AFTER[last.kind] is not Bills.GPU_AND_DISK:
        return view
    return msgspec.structs.replace(view, events=tuple(event for event in view.events if event is not last))


def _started_unrecorded(
    lease: Lease, seen_at: datetime, turned_at: list[meter.Turn], *, bills_while_loading: bool = False
) -> list[meter.Turn]:
    """Return the turns, with an unrecorded start added if the instance must have billed before a recorded stop.

    Such a start is the return of a silent host, or the end of loading of an instance that was given back. Where a
    market bills what loads, it is the rent itself of an instance that was never listed before its stop.
    A start on record shows too that a silent host is back, and its disk bills since an unknown time before.
    """
    if lease.bills is Bills.NOTHING and turned_at and turned_at[0][1] is Bills.GPU_AND_DISK:
        return [(_returned_at(lease, seen_at, turned_at[0][0]), Bills.DISK), *turned_at]
    is_undated = lease.bills is Bills.NOTHING or _is_loading_again(lease)
    is_undated |= bills_while_loading and _is_starting(lease)
    if not is_undated or not turned_at or turned_at[0][1] is not Bills.DISK:
        return turned_at
    # A look after the stop says nothing about the time of the start.
    seen_at = seen_at if seen_at <= turned_at[0][0] else lease.accrued_until
    return [(max(seen_at, lease.accrued_until), Bills.GPU_AND_DISK), *turned_at]


def _returned_at(lease: Lease, seen_at: datetime, started_at: datetime) -> datetime:
    """Return since when the disk of an instance counts that started on a host that was silent when last seen."""
    return max(seen_at if seen_at < started_at else lease.accrued_until, lease.accrued_until)


def _is_loading_again(lease: Lease) -> bool:
    """Return whether a stopped instance was given back or started again, also if the lease is missing meanwhile.

    The market's record of that is older than the billing.
    """
    is_loading = lease.state is LeaseState.STARTING or _is_missed_start(lease)
    return is_loading and lease.has_run and lease.bills is Bills.DISK


def _is_missed_start(lease: Lease) -> bool:
    """Return whether a lease is missing that loaded, or was silent while it loaded, when it was last listed."""
    return lease.state is LeaseState.MISSING and lease.loading_since is not None


def _is_starting(lease: Lease) -> bool:
    """Return whether a start may be under way, also if the lease is missing or being released meanwhile."""
    is_given_back = lease.state is LeaseState.STARTING or _is_missed_start(lease)
    is_stopped = lease.paused_by_us or lease.has_failed or (lease.interrupted_by is not None and not is_given_back)
    # The leftover of a refused bid never starts.
    is_stopped |= lease.end_reason == LEFTOVER
    states = {LeaseState.STARTING, LeaseState.MISSING, LeaseState.RELEASING}
    return lease.bills is Bills.DISK and lease.state in states and not is_stopped


def may_have_run(
    lease: Lease, view: MarketView, row: Instance, between: tuple[datetime, datetime], poll: timedelta
) -> bool:
    """Return whether a start that is stopped, ended or silent at the next look may have run unseen before it.

    The market's record shows each start, if it was read; no record shows the start of a lease that bills while it
    loads. A container that ended had begun. What is on record counts also where an order of ours stopped it unseen.
    One that was outbid before it ran may have been given back, and lost again, where no record could be read.
    """
    unseen, is_untold = between[1] - between[0], row.bills_while_loading or not view.is_record_read
    is_stopped = row.state in {InstanceState.PAUSED, InstanceState.OFFLINE}
    is_ended = row.state is InstanceState.EXITED and unseen > long_unseen(poll)
    is_back = lease.state is LeaseState.OFFLINE and row.state is not InstanceState.OFFLINE
    if is_stopped and _is_first_start_told(lease, view, between[1]):
        return True
    may_be_unseen = is_ended or (is_stopped and is_untold and unseen > UNSEEN)
    is_given_back = is_stopped and may_have_been_given_back(lease, view, between)
    may_start = lease.state is LeaseState.STARTING or _is_missed_start(lease) or is_back
    return (may_be_unseen and may_start) or is_given_back


def may_have_been_given_back(lease: Lease, view: MarketView, between: tuple[datetime, datetime]) -> bool:
    """Return whether a stopped lease may have run and been lost again between two looks, and no record was read."""
    is_dark = not view.is_record_read and between[1] - between[0] > UNSEEN
    return is_dark and _may_be_given_back(lease, view.rules)


def _is_first_start_told(lease: Lease, view: MarketView, until: datetime) -> bool:
    return any(
        event.kind is MarketEventKind.STARTED
        and event.instance_id == lease.instance_id
        and lease.accrued_until < event.at <= until
        for event in view.events
    )


def long_unseen(poll: timedelta) -> timedelta:
    """Return the time unseen after which a container that ended was of use: after less, its start failed at once."""
    return max(UNSEEN, 2 * poll)


def _may_be_given_back(lease: Lease, rules: MarketRules) -> bool:
    """Return whether its market may have started a stopped lease again."""
    is_stopped = lease.paused_by_us or lease.has_failed or not rules.starts_by_itself
    states = {LeaseState.PAUSED, LeaseState.MISSING, LeaseState.RELEASING}
    return lease.bills is Bills.DISK and lease.state in states and not is_stopped and lease.interrupted_by in GIVEN_BACK


def _is_silent(lease: Lease) -> bool:
    """Return whether the GPUs of a lease bill as soon as its host answers again, also if it is missing meanwhile."""
    is_stopped = lease.paused_by_us or lease.has_failed
    is_stopped |= lease.interrupted_by not in {None, Cause.HOST_OFFLINE, Cause.CONTAINER_EXIT}
    return lease.bills is Bills.NOTHING and lease.state in {LeaseState.OFFLINE, LeaseState.MISSING} and not is_stopped


def _may_have_switched(lease: Lease, between: tuple[datetime, datetime]) -> bool:
    """Return whether nobody looked at a lease for as long as the dead man's switch of its guard waits.

    The guard of a host that came back meanwhile has then stopped its instance by the instance's own key.
    """
    return between[1] - between[0] >= kept_terms.least_silence(lease) - sign_of_life.SPARE


def turned(
    lease: Lease,
    view: MarketView,
    bills: Bills,
    between: tuple[datetime, datetime],
    until: datetime,
    *,
    is_stopped: bool = False,
    ends_at: datetime | None = None,
) -> Turned:
    """Return the turns of a lease that bills `bills` now and was seen before and after the change, at `between`.

    If the lease was starting and `is_stopped` now, it may have run; without a readable record it counts as having run.
    `ends_at` is the end of its contract.
    """
    row = view.instance(lease.instance_id)
    bills_while_loading = row is not None and row.bills_while_loading
    events = recorded(lease, view.events, until)
    turned_at = _started_unrecorded(lease, between[0], events, bills_while_loading=bills_while_loading)
    # No record shows a stop for lack of credit or at the end of a contract. One that had ended before starts on record.
    was_over = lease.ends_at is not None and lease.ends_at <= between[0]
    ends = {ends_at, row.ends_at if row is not None else None}
    is_over = not was_over and any(end is not None and lease.accrued_until < end <= until for end in ends)
    is_untold = not view.is_record_read or (view.credit is not None and view.credit.micros <= 0) or is_over
    # Nor one by the instance's own key, and the start of a lease that loads again is on record before it bills.
    is_untold |= _is_loading_again(lease) or _may_have_switched(lease, between)
    # What was stopped before its host fell silent starts on record.
    is_back = lease.bills is Bills.NOTHING and bills is Bills.DISK and (_is_silent(lease) or not view.is_record_read)
    may_have_run = _is_starting(lease) or is_back or may_have_been_given_back(lease, view, between)
    if is_stopped and not turned_at and is_untold and may_have_run:
        turned_at = [(max(between[0], lease.accrued_until), Bills.GPU_AND_DISK)]
    before = turned_at[-1][1] if turned_at else lease.bills
    if before is bills:
        # A look by a clock that is behind counts as no earlier than the last metering.
        return Turned(tuple(turned_at), turned_at[-1][0] if turned_at else max(between[1], lease.accrued_until))
    first = max(between[0], lease.accrued_until, *(at for at, _ in turned_at[-1:]))
    last = max(between[1], first)
    is_more = _BILLS_MORE.index(bills) > _BILLS_MORE.index(before)
    turned_at.append((first if is_more else last, bills))
    return Turned(tuple(turned_at), first + max(last - first, timedelta()) / 2)
