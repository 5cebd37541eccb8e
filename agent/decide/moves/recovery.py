"""Recovery from an interruption: resume, raise the bid, wait, or move, each priced in dollars over one horizon.

The cost of a way over the horizon is its payments plus the worth of every hour in which the slot is not useful. That
worth is a share of the workload's `value_per_hour`: what an hour of the work is worth to the operator. The choice is
made again each cycle.

Invariants:
1. A disk that may hold the only checkpoint is left only if the workload may lose it, or the bucket was found to have
   its last checkpoint. In both cases the lost work is priced.
2. A move first cancels whatever could start the old lease again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent.decide.moves.way_cost import Way, over_span
from agent.decide.pricing import bidding, cooldowns, useful_hour
from agent.decide.pricing.offer_terms import speed
from agent.decide.pricing.rival_bids import ASSUMED, Rivals
from agent.decide.reconcile.guards import guard_switch
from agent.decide.reconcile.workload_end import COOL_OFF
from agent.decide.strategy import Candidate, Proposal, SlotView
from agent.domain import span_text
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work import only_copy
from agent.domain.work.decision import Option, Reason, Term
from agent.domain.work.only_copy import is_carried, may_leave, may_leave_at_a_price
from agent.domain.work.workload import CheckpointPlace, Workload

HORIZON_HOURS = 2.0
"""The horizon of the comparison, unless the slot's window closes before. A longer one favours moves. Recorded instances
that came back did so within 93 minutes."""

MOST_RUNS = 24
"""The most leases of a slot in a day, not counting hosts that are gone for good: more would be ping-pong, and each pays
for an image. The last one is on demand, which cannot be outbid. With half as many, bidding wars left whole afternoons
empty."""
LEAVE_BEFORE = timedelta(hours=1)
"""A running lease is moved this long before its host leaves the market: time for several slow image pulls."""

EARLY_RESUME = timedelta(minutes=8, seconds=6)
EARLY_RESUME_PER_HOUR = 1.54
"""Rate for instances paused after running: 9 of 48 came back, within 8.1 minutes (recorded 2026-07-27, 103 stopped
episodes). As a constant rate in that window: -ln(1 - 9/48) / 0.135 h."""
LATE_RESUME_PER_HOUR = 0.05
"""Rate after that. None came back while watched; the small rate is assumed, so that waiting is not priced as
hopeless."""
NEVER_STARTED_RESUME = timedelta(minutes=90)
NEVER_STARTED_RESUME_PER_HOUR = 0.62
"""Rate in that window for instances outbid before they ran: 60.5 % came back (same record): -ln(.395) / 1.5 h. No
longer wait was recorded, and a person may have stopped it for good: afterwards the late rate counts."""
RAISE_SUCCESS = 0.8
"""Chance that a bid above the known price gets the GPU back. Assumed; one queued instance did not start at +26 %."""
FALLBACK_MBPS = 200.0
"""Assumed download rate of the image elsewhere after a failed raise."""
RAISE_PATIENCE = timedelta(minutes=2)
"""How long a raise may take to show an effect. After that it has failed, and the other ways are weighed again. Restarts
of up to a minute are usual."""

_HOUR = timedelta(hours=1)

OF_THE_MARKET = frozenset({Cause.OUTBID, Cause.DISPLACED, Cause.UNKNOWN})
NOT_OF_THE_MARKET = frozenset({Cause.CONTAINER_EXIT, Cause.EXTERNAL_STOP, Cause.OUT_OF_CREDIT})
BEYOND_BIDS = frozenset({Cause.DISPLACED, Cause.HOST_OFFLINE, Cause.HOST_GONE, Cause.CONTRACT_END})
"""Causes after which a higher bid wins nothing back: on-demand outranks every bid, and an absent host accepts none."""
OWN_HANDS = {
    Cause.CONTAINER_EXIT: "its container ended",
    Cause.EXTERNAL_STOP: "a person or the work itself stopped it",
}
NO_RETURN = frozenset({Cause.HOST_GONE, Cause.CONTRACT_END})


@dataclass(frozen=True, slots=True)
class RecoveryParams:
    """Numbers of a recovery, from the strategy's Params."""

    ceiling: UsdPerHour
    raise_headroom: float
    least_gain: float
    may_move: bool
    may_raise: bool
    worth: UsdPerHour
    """The worth of an hour of the slot's work: an idle hour costs this much."""
    fastest: float = 0.0
    """DLPerf of the GPU whose hour counts as a whole one; 0 means the lost lease's GPU."""
    most_speed: float = 1.0
    rivals: Rivals = ASSUMED
    """The law of rivals' bids, by which a higher bid is lost less often."""
    starts_by_itself: bool = True
    """Whether the lease's market may start it again without a call."""
    horizon: float = HORIZON_HOURS
    """The hours over which the ways are compared."""


def recover(
    slot: SlotView,
    work: Workload,
    elsewhere: Sequence[Candidate],
    market_loss_rate: float,
    numbers: RecoveryParams,
    now: datetime,
) -> Proposal:
    """Return the cheapest way on for a slot whose lease is paused or offline.

    `elsewhere` are the best offers on other hosts, one per tenure. `market_loss_rate` is the rate of losses on the
    lease's own host. The first way (wait or resume) wins unless another is cheaper by `least_gain` of its cost.
    """
    lease = slot.lease
    if lease is None or slot.down is None:
        raise ValueError("recover needs a slot whose lease is down")
    if (left := cooling_off(slot, now)) is not None:
        return left
    raised = None if lease.paused_by_us else lease.bid_since
    if raised is not None and raised >= slot.down.since and now - raised < RAISE_PATIENCE:
        why = f"the bid was raised to {lease.gpu_rate} a moment ago; the market may give it back"
        return _hold(slot, "raised", why)
    numbers = replace(numbers, horizon=min(numbers.horizon, slot.hours_left))
    ways = [_stay(slot, lease, work, numbers, now)]
    ways += _raise(slot, lease, work, market_loss_rate, numbers)
    for best in elsewhere:
        ways += _move(slot, lease, work, best, numbers)
    ways += _let_go(slot, lease, work, numbers)
    return _cheapest(ways, numbers, only_copy.why_kept(lease, work, slot.down.unverified) if numbers.may_move else "")


def cooling_off(slot: SlotView, now: datetime) -> Proposal | None:
    """Return a hold for a while after a person or the work itself ended the lease; None once it may start again."""
    lease = slot.lease
    if lease is None or slot.down is None or lease.interrupted_by is None or lease.interrupted_by not in OWN_HANDS:
        return None
    if now - slot.down.since >= COOL_OFF or lease.end_reason == guard_switch.SWITCHED:
        return None
    sentence = (
        f"{OWN_HANDS[lease.interrupted_by]}: it stays so for {span_text.of(COOL_OFF)}; "
        f"`gpubid pause {lease.slot}` keeps it stopped, `gpubid release {lease.slot}` starts it elsewhere"
    )
    return _hold(slot, "cool_off", sentence)


def _cheapest(ways: Sequence[tuple[Option, Proposal]], numbers: RecoveryParams, of_its_disk: str) -> Proposal:
    rest, cheapest = ways[0], min(ways, key=lambda way: way[0].dollars)
    gain = rest[0].dollars - cheapest[0].dollars
    chosen = cheapest if gain > numbers.least_gain * rest[0].dollars else rest
    options = tuple(option for option, _ in ways)
    others = ", ".join(f"{option.name} ${option.dollars:.3f}" for option, _ in ways if option is not chosen[0])
    proposal = chosen[1]
    sentence = f"{proposal.reason.sentence}: ${chosen[0].dollars:.3f} over {round(numbers.horizon, 2):g} h"
    sentence += f" against {others}" if others else ""
    sentence += of_its_disk
    return Proposal(
        slot=proposal.slot,
        kind=proposal.kind,
        reason=Reason(proposal.reason.code, sentence, options),
        candidate=proposal.candidate,
        lease=proposal.lease,
        bid=proposal.bid,
    )


def _stay(
    slot: SlotView, lease: Lease, work: Workload, numbers: RecoveryParams, now: datetime
) -> tuple[Option, Proposal]:
    """Return the way at the same price: wait until the market gives it back, or start it again if it was stopped."""
    idle = _idle_hours(lease, now - lease.state_since, numbers.horizon)
    own = speed(lease.dlperf, numbers.fastest, numbers.most_speed)
    is_waiting = lease.is_open_bid and lease.bills is not Bills.GPU_AND_DISK
    if is_waiting and slot.down is not None and any(quote <= lease.bid for quote in slot.down.quotes):
        # Its bid wins the next auction. A new bid elsewhere would wait for that auction too.
        idle = useful_hour.CONTAINER_SECONDS / 3600
    # Where the market starts nothing by itself, waiting means a resume at the same price.
    if lease.paused_by_us or lease.interrupted_by in NOT_OF_THE_MARKET or _needs_start(lease, numbers):
        if slot.is_start_refused:
            option = _priced(Way("wait", lease.gpu_rate, lease.disk_rate, own, numbers.horizon), work, numbers)
            return option, _hold(slot, "order_refused", "wait: the market refused its start a moment ago")
        has_lost = lease.interrupted_by in OF_THE_MARKET or (lease.bid_limit is not None and not lease.has_run)
        start = idle if has_lost else useful_hour.CONTAINER_SECONDS / 3600
        option = _priced(Way("resume", lease.gpu_rate, lease.disk_rate, own, start), work, numbers)
        reason = Reason("resume", "start it again on its host")
        return option, Proposal(slot.slot, IntentKind.RESUME, reason, lease=lease)
    option = _priced(Way("wait", lease.gpu_rate, lease.disk_rate, own, idle), work, numbers)
    return option, _hold(slot, "wait_paused", f"wait for it to resume at {lease.bid} ({idle:.2f} h expected)")


def _needs_start(lease: Lease, numbers: RecoveryParams) -> bool:
    """Return whether a lease was stopped and needs a start; one on a silent host was not stopped."""
    return not numbers.starts_by_itself and lease.state is not LeaseState.OFFLINE and not lease.is_open_bid


def _let_go(slot: SlotView, lease: Lease, work: Workload, numbers: RecoveryParams) -> list[tuple[Option, Proposal]]:
    """Return the way that pays nothing, if allowed: release a disk that bills for an unlikely resumption.

    The slot counts as idle over the whole horizon, although an offer may come: the release must pay by itself.
    """
    is_lost = lease.state is LeaseState.PAUSED and lease.interrupted_by in OF_THE_MARKET
    if not numbers.may_move or not is_lost or not may_leave_at_a_price(lease, work):
        return []
    worth, lost = numbers.worth.dollars * numbers.horizon, _lost_work_dollars(lease, work)
    terms = (Term("lost work", lost, "$"), Term("worth of the other hours", worth, "$"))
    option = Option("let_go", worth + lost, terms)
    reason = Reason("not_needed", f"release host {lease.host_id}: its disk bills {lease.disk_rate} and is not needed")
    return [(option, Proposal(slot.slot, IntentKind.RELEASE, reason, lease=lease))]


def _idle_hours(lease: Lease, down_for: timedelta, horizon: float = HORIZON_HOURS) -> float:
    """Return the expected hours of the horizon that a paused lease waits until the market gives it back."""
    if lease.interrupted_by in NO_RETURN:
        return horizon
    window, rate = EARLY_RESUME, EARLY_RESUME_PER_HOUR
    if not lease.has_run:
        window, rate = NEVER_STARTED_RESUME, NEVER_STARTED_RESUME_PER_HOUR
    early = min(max((window - down_for) / _HOUR, 0.0), horizon)
    waited, resumed = useful_hour.stay(rate, early) if early else (0.0, 0.0)
    return waited + (1 - resumed) * useful_hour.stay(LATE_RESUME_PER_HOUR, horizon - early)[0]


def _raised_hours(lease: Lease, work: Workload, horizon: float) -> float:
    """Return the expected hours of the horizon that a lease whose bid was just raised is idle.

    A failed raise is given up after `RAISE_PATIENCE`; then the workload moves if its disk may be left.
    """
    failed = horizon
    if may_leave_at_a_price(lease, work):
        failed = RAISE_PATIENCE / _HOUR + useful_hour.loading_hours(work.image_gb, FALLBACK_MBPS)
    return useful_hour.CONTAINER_SECONDS / 3600 + (1 - RAISE_SUCCESS) * failed


def _raise(
    slot: SlotView, lease: Lease, work: Workload, market_loss_rate: float, numbers: RecoveryParams
) -> list[tuple[Option, Proposal]]:
    is_bid = lease.tenure is Tenure.INTERRUPTIBLE and lease.bid_limit is None
    if slot.down is None or cooldowns.RAISE in slot.down.refused:
        return []
    if not numbers.may_raise or not is_bid or lease.interrupted_by in BEYOND_BIDS:
        return []
    beat = bidding.price_to_outbid(lease, slot.down.quotes)
    if beat is None or (lease.paused_by_us and lease.gpu_rate > beat):
        return []  # what we stopped at a bid that wins needs a start, and no higher bid
    least = max(beat, lease.host_floor or beat) + bidding.LEAST_STEP
    bids = {bidding.opening(least, share, numbers.ceiling) for share in bidding.ladder(numbers.raise_headroom)}
    return [
        _raised_to(slot, lease, work, bid, beat, market_loss_rate, numbers)
        for bid in sorted(bid for bid in bids if bid is not None)
        if bid > lease.gpu_rate
    ]


def _raised_to(
    slot: SlotView,
    lease: Lease,
    work: Workload,
    bid: UsdPerHour,
    beat: UsdPerHour,
    market_loss_rate: float,
    numbers: RecoveryParams,
) -> tuple[Option, Proposal]:
    """Return the way of one higher bid, which costs more every hour and is lost less often."""
    floor = lease.host_floor or beat
    hazard = market_loss_rate * numbers.rivals.losing_share(max(bid.micros / max(floor.micros, 1) - 1.0, 0.0))
    own = speed(lease.dlperf, numbers.fastest, numbers.most_speed)
    way = Way("raise", bid, lease.disk_rate, own, _raised_hours(lease, work, numbers.horizon), hazard)
    option = _priced(way, work, numbers)
    reason = Reason("raise_bid", f"raise the bid from {lease.gpu_rate} to {bid} to beat {beat}")
    return option, Proposal(slot.slot, IntentKind.REBID, reason, lease=lease, bid=bid)


def _move(
    slot: SlotView, lease: Lease, work: Workload, best: Candidate, numbers: RecoveryParams
) -> list[tuple[Option, Proposal]]:
    if not numbers.may_move or not may_leave_at_a_price(lease, work) or not _has_moves_left(slot, lease, best):
        return []
    reckoning = best.reckoning
    way = Way(
        "on_demand" if best.way.tenure is Tenure.ON_DEMAND else "move",
        best.way.rate,
        best.offer.disk_rate(work.disk_gb),
        speed(best.offer.dlperf, numbers.fastest or lease.dlperf, numbers.most_speed),
        reckoning.loading_hours,
        reckoning.hazard,
        moved=reckoning.traffic_dollars,
        lost_work=_lost_work_dollars(lease, work),
    )
    option = _priced(way, work, numbers)
    sentence = f"move to host {best.offer.host_id} at {best.way.rate} {best.way.tenure.value}"
    return [(option, move_to(slot, best, Reason("move", sentence)))]


def move_to(slot: SlotView, best: Candidate, reason: Reason) -> Proposal:
    """Return the move of a slot to `best`; if the lost lease could start again, first the pause that cancels that."""
    lease = slot.lease
    is_down = slot.down is not None and not slot.down.is_announced
    may_start = lease is not None and is_down and (lease.tenure is Tenure.INTERRUPTIBLE or lease.may_start)
    if lease is None or not may_start or lease.paused_by_us or lease.interrupted_by is Cause.HOST_OFFLINE:
        return Proposal(slot.slot, IntentKind.RENT, reason, candidate=best)
    sentence = f"{reason.sentence}; first make sure that the old lease cannot start by itself"
    cancel = Reason("cancel_start", sentence, reason.options)
    return Proposal(slot.slot, IntentKind.PAUSE, cancel, candidate=best, lease=lease)


def may_go(slot: SlotView, work: Workload, best: Candidate) -> bool:
    """Return whether a slot may leave its lease for `best`: its disk may be lost, and it has moves left today."""
    lease = slot.lease
    return lease is None or (may_leave(lease, work) and _has_moves_left(slot, lease, best))


def _has_moves_left(slot: SlotView, lease: Lease, best: Candidate) -> bool:
    if lease.interrupted_by in NO_RETURN:
        return True
    if lease.bid_limit is not None and lease.host.is_same_place(best.offer.host):
        return False  # a second bid in the pool wins no earlier
    return slot.runs < (MOST_RUNS if best.way.tenure is Tenure.ON_DEMAND else MOST_RUNS - 1)


def ends_soon(lease: Lease, now: datetime) -> bool:
    """Return whether the host of a lease leaves the market so soon that the workload must move before."""
    return lease.ends_at is not None and lease.ends_at - now < LEAVE_BEFORE


def leave_ending_host(slot: SlotView, work: Workload, best: Candidate | None, now: datetime) -> Proposal | None:
    """Return the move of a running lease whose host leaves the market, or None.

    The new lease runs before the old one ends.
    """
    lease = slot.lease
    if lease is None or lease.state is not LeaseState.RUNNING or slot.arriving is not None or not ends_soon(lease, now):
        return None
    if lease.ends_at is not None and (lease.ends_at - now) / _HOUR >= slot.hours_left:
        return None
    when = f"host {lease.host_id} leaves the market at {lease.ends_at:%Y-%m-%d %H:%M} UTC"
    if not may_leave(lease, work):
        return _hold(slot, "ends_soon", f"{when} with the only checkpoint on its disk: copy it, or set may_lose_disk")
    if best is None:
        return _hold(slot, "ends_soon", f"{when}, and no offer fits to move to")
    options = (Option("move", best.reckoning.per_useful_hour, best.reckoning.terms()),)
    sentence = f"{when}; move to host {best.offer.host_id} at {best.way.rate} {best.way.tenure.value} while it runs"
    return Proposal(slot.slot, IntentKind.RENT, Reason("end_date", sentence, options), candidate=best)


def _lost_work_dollars(lease: Lease, work: Workload) -> float:
    """Return the cost of repeating the work on an abandoned disk, at its rate: all since the lease was opened.

    If the bucket has a last checkpoint of known time: all work since then.
    """
    if not lease.has_run or work.checkpoint.place is not CheckpointPlace.DISK:
        return 0.0
    taken = lease.checkpoint_taken_at if is_carried(lease, work) else None
    return max((lease.state_since - (taken or lease.opened_at)) / _HOUR, 0.0) * lease.gpu_rate.dollars


def _priced(way: Way, work: Workload, numbers: RecoveryParams) -> Option:
    return over_span(way, work, numbers.worth, numbers.horizon)


def _hold(slot: SlotView, code: str, sentence: str) -> Proposal:
    return Proposal(slot.slot, None, Reason(code, sentence))
