"""After an interruption: resume, raise the bid, wait, or move; each way is priced in dollars over one horizon.

A way's cost over the horizon is what it pays plus what the slot is worth for every hour it is not useful: a share of
the workload's own `max_price`, the most that the operator would pay for an hour. The choice is made again each cycle.

Invariants:
1. A disk that may hold the only checkpoint is left only when the workload says it may lose it, or the bucket was found
   to have its last checkpoint; in both cases the work that is lost is priced.
2. A move first cancels whatever could start the old lease again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.pricing import bidding, cooldowns, useful_hour
from agent.decide.pricing.offer_terms import speed
from agent.decide.pricing.rival_bids import ASSUMED, Rivals
from agent.decide.reconcile.guards import guard_switch
from agent.decide.reconcile.workload_end import COOL_OFF
from agent.decide.strategy import Candidate, Proposal, SlotView
from agent.domain.market.host import is_pool
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Option, Reason, Term
from agent.domain.work.only_copy import is_carried, may_leave, may_leave_at_a_price
from agent.domain.work.workload import CheckpointPlace, Workload

HORIZON_HOURS = 2.0
"""The horizon of the comparison. Longer favours moves; recorded instances that came back did so within 93 minutes."""

MOST_RUNS = 24
"""The most leases of a slot in a day, without hosts that are gone for good: more is ping-pong, and each pays for
an image. The last is on demand, which nobody takes away. Half as many left whole afternoons empty in bidding wars."""
LEAVE_BEFORE = timedelta(hours=1)
"""How long before its host leaves the market a running lease is moved: time for several slow image pulls."""

EARLY_RESUME = timedelta(minutes=8, seconds=6)
EARLY_RESUME_PER_HOUR = 1.54
"""Instances paused after running: 9 of 48 came back, within 8.1 minutes (recorded 2026-07-27, 103 stopped episodes);
read as a constant rate in that window: -ln(1 - 9/48) / 0.135 h."""
LATE_RESUME_PER_HOUR = 0.05
"""After that none came back while watched; an assumed small rate keeps waiting from being priced as hopeless."""
NEVER_STARTED_RESUME_PER_HOUR = 0.62
"""Outbid before they ran: 60.5 % back by 90 minutes (same record), read as a constant rate: -ln(.395) / 1.5 h."""
TROUBLE_HOURS = 10 / 60
"""How long a further interruption idles a slot: detection, choice, and loading elsewhere. Assumed."""
RAISE_SUCCESS = 0.8
"""Chance that a bid above the known price gets the GPU back; assumed: a queued one was seen not to move at +26 %."""
FALLBACK_MBPS = 200.0
"""Assumed load rate of the image elsewhere after a raise that failed."""
RAISE_PATIENCE = timedelta(minutes=2)
"""How long a raise may take to show; then it has failed and the other ways are weighed again. Restarts of up to a
minute are usual."""

_HOUR = timedelta(hours=1)

OF_THE_MARKET = frozenset({Cause.OUTBID, Cause.DISPLACED, Cause.UNKNOWN})
NOT_OF_THE_MARKET = frozenset({Cause.CONTAINER_EXIT, Cause.EXTERNAL_STOP, Cause.OUT_OF_CREDIT})
BEYOND_BIDS = frozenset({Cause.DISPLACED, Cause.HOST_OFFLINE, Cause.HOST_GONE, Cause.CONTRACT_END})
"""A higher bid wins nothing back here: on-demand outranks every bid, and a host that is away takes none."""
OWN_HANDS = {
    Cause.CONTAINER_EXIT: "its container ended",
    Cause.EXTERNAL_STOP: "a person or the work itself stopped it",
}
NO_RETURN = frozenset({Cause.HOST_GONE, Cause.CONTRACT_END})


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of a recovery that a strategy tunes: see its own Params."""

    ceiling: UsdPerHour
    raise_headroom: float
    least_gain: float
    may_move: bool
    may_raise: bool
    worth: UsdPerHour
    """The price of an hour of the slot's work: an hour without it costs this much."""
    fastest: float = 0.0
    """DLPerf that an hour is compared with; 0 counts an hour on the lost lease's GPU as a whole one."""
    rivals: Rivals = ASSUMED
    """The law by which a higher bid is lost less often."""


def recover(
    slot: SlotView,
    work: Workload,
    elsewhere: Sequence[Candidate],
    market_loss_rate: float,
    numbers: Numbers,
    now: datetime,
) -> Proposal:
    """Return the cheapest way out for a slot whose lease is paused or offline.

    `elsewhere` are the best offers on other hosts, one a tenure; `market_loss_rate` is what the lease's own host is
    lost at. Doing nothing wins unless another way is cheaper by `least_gain` of it.
    """
    held = slot.lease
    if held is None or slot.down is None:
        raise ValueError("recover needs a slot whose lease is down")
    left = cooling_off(slot, now)
    if left is not None:
        return left
    if held.bid_since is not None and held.bid_since >= slot.down.since and now - held.bid_since < RAISE_PATIENCE:
        return _hold(slot, "raised", f"the bid was raised to {held.gpu_rate} a moment ago; the market may give it back")
    ways = [_stay(slot, held, work, numbers, now)]
    ways += _raise(slot, held, work, market_loss_rate, numbers)
    for best in elsewhere:
        ways += _move(slot, held, work, best, numbers)
    ways += _let_go(slot, held, work, numbers)
    return _cheapest(
        ways, numbers.least_gain, _of_its_disk(held, work, slot.down.unverified) if numbers.may_move else ""
    )


def cooling_off(slot: SlotView, now: datetime) -> Proposal | None:
    """Return a hold while a person or the work itself ended it recently; None once it may start again."""
    held = slot.lease
    if held is None or slot.down is None or held.interrupted_by not in OWN_HANDS:
        return None
    if now - slot.down.since >= COOL_OFF or held.end_reason == guard_switch.SWITCHED:
        return None
    sentence = (
        f"{OWN_HANDS[held.interrupted_by]}: it stays so for {COOL_OFF.total_seconds() / 60:.0f} minutes; "
        f"`gpubid pause {held.slot}` keeps it stopped, `gpubid release {held.slot}` starts it elsewhere"
    )
    return _hold(slot, "cool_off", sentence)


def _cheapest(ways: Sequence[tuple[Option, Proposal]], least_gain: float, of_its_disk: str) -> Proposal:
    rest, cheapest = ways[0], min(ways, key=lambda way: way[0].dollars)
    gain = rest[0].dollars - cheapest[0].dollars
    chosen = cheapest if gain > least_gain * rest[0].dollars else rest
    options = tuple(option for option, _ in ways)
    others = ", ".join(f"{option.name} ${option.dollars:.3f}" for option, _ in ways if option is not chosen[0])
    proposal = chosen[1]
    sentence = f"{proposal.reason.sentence}: ${chosen[0].dollars:.3f} over {HORIZON_HOURS:g} h"
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


def _stay(slot: SlotView, held: Lease, work: Workload, numbers: Numbers, now: datetime) -> tuple[Option, Proposal]:
    """The way without more spend: wait for the market to give it back, or start what we or others stopped."""
    idle, own = _idle_hours(held, now - held.state_since), speed(held.dlperf, numbers.fastest)
    # A pool's market starts nothing by itself: to wait there is to ask for it at the same price.
    if held.paused_by_us or held.interrupted_by in NOT_OF_THE_MARKET or _is_stopped_pod(held):
        if slot.down is not None and "resume" in slot.down.refused:
            option = _over_horizon(_Way("wait", held.gpu_rate, held.disk_rate, own, HORIZON_HOURS), work, numbers)
            return option, _hold(slot, "order_refused", "wait: the market did not take its start a moment ago")
        start = idle if held.interrupted_by in OF_THE_MARKET else useful_hour.CONTAINER_SECONDS / 3600
        option = _over_horizon(_Way("resume", held.gpu_rate, held.disk_rate, own, start), work, numbers)
        reason = Reason("resume", "start it again on its host")
        return option, Proposal(slot.slot, IntentKind.RESUME, reason, lease=held)
    option = _over_horizon(_Way("wait", held.gpu_rate, held.disk_rate, own, idle), work, numbers)
    return option, _hold(slot, "wait_paused", f"wait for it to resume at {held.gpu_rate} ({idle:.2f} h expected)")


def _is_stopped_pod(held: Lease) -> bool:
    """Return whether it waits in a pool for a start; a silent host was not stopped and goes on."""
    return is_pool(held.host_id) and held.state is not LeaseState.OFFLINE


def _let_go(slot: SlotView, held: Lease, work: Workload, numbers: Numbers) -> list[tuple[Option, Proposal]]:
    """The way that pays nothing: release a disk that bills for a resumption that is unlikely.

    The slot is reckoned idle over the whole horizon, although an offer may come: what is let go must be worth it alone.
    """
    is_lost = held.state is LeaseState.PAUSED and held.interrupted_by in OF_THE_MARKET
    if not numbers.may_move or not is_lost or not may_leave_at_a_price(held, work):
        return []
    worth, lost = numbers.worth.dollars * HORIZON_HOURS, _lost_work_dollars(held, work)
    terms = (Term("lost work", lost, "$"), Term("worth of the other hours", worth, "$"))
    option = Option("let_go", worth + lost, terms)
    reason = Reason("not_needed", f"release host {held.host_id}: its disk bills {held.disk_rate} and is not needed")
    return [(option, Proposal(slot.slot, IntentKind.RELEASE, reason, lease=held))]


def _of_its_disk(held: Lease, work: Workload, unverified: str) -> str:
    """Return why rule 11 forbids leaving a lease, and what would allow it, or what allows it beside the file's word."""
    if may_leave(held, work):
        return ""
    if is_carried(held, work):
        taken = held.checkpoint_taken_at
        return f"; its disk may go: the bucket has its checkpoint{f' of {taken:%H:%M} UTC' if taken else ''}, verified"
    why = f" and {unverified}" if unverified else ""
    return (
        f"; it is not moved, because its disk may hold the only checkpoint{why}: where checkpoints are kept elsewhere "
        f'set at = "remote" in [workloads.{work.name}.checkpoint], else may_lose_disk = true lets it be moved'
    )


def _idle_hours(held: Lease, down_for: timedelta) -> float:
    """Return the hours of the horizon that a paused lease waits until the market gives it back, as expected."""
    if held.interrupted_by in NO_RETURN:
        return HORIZON_HOURS
    if not held.has_run:
        return useful_hour.stay(NEVER_STARTED_RESUME_PER_HOUR, HORIZON_HOURS)[0]
    early = max((EARLY_RESUME - down_for) / timedelta(hours=1), 0.0)
    waited, resumed = useful_hour.stay(EARLY_RESUME_PER_HOUR, early) if early else (0.0, 0.0)
    return waited + (1 - resumed) * useful_hour.stay(LATE_RESUME_PER_HOUR, HORIZON_HOURS - early)[0]


def _raised_hours(held: Lease, work: Workload) -> float:
    """Return the hours of the horizon that a lease whose bid was just raised is idle, as expected.

    A raise that fails is given up after `RAISE_PATIENCE`, and the workload moves where its disk may be left.
    """
    failed = HORIZON_HOURS
    if may_leave_at_a_price(held, work):
        failed = RAISE_PATIENCE / _HOUR + useful_hour.loading_hours(work.image_gb, FALLBACK_MBPS)
    return useful_hour.CONTAINER_SECONDS / 3600 + (1 - RAISE_SUCCESS) * failed


def _raise(
    slot: SlotView, held: Lease, work: Workload, market_loss_rate: float, numbers: Numbers
) -> list[tuple[Option, Proposal]]:
    if slot.down is not None and cooldowns.RAISE in slot.down.refused:
        return []
    if not numbers.may_raise or held.tenure is not Tenure.INTERRUPTIBLE or held.interrupted_by in BEYOND_BIDS:
        return []
    quotes = slot.down.quotes if slot.down else ()
    beat = bidding.to_beat(held, quotes)
    if beat is None:
        return []
    least = max(beat, held.host_floor or beat) + bidding.LEAST_STEP
    bids = {bidding.opening(least, share, numbers.ceiling) for share in bidding.ladder(numbers.raise_headroom)}
    return [
        _raised_to(slot, held, work, bid, beat, market_loss_rate, numbers)
        for bid in sorted(bid for bid in bids if bid is not None)
        if bid > held.gpu_rate
    ]


def _raised_to(
    slot: SlotView,
    held: Lease,
    work: Workload,
    bid: UsdPerHour,
    beat: UsdPerHour,
    market_loss_rate: float,
    numbers: Numbers,
) -> tuple[Option, Proposal]:
    """A higher bid costs more every hour and is lost less often."""
    floor = held.host_floor or beat
    hazard = market_loss_rate * numbers.rivals.losing_share(max(bid.micros / max(floor.micros, 1) - 1.0, 0.0))
    own = speed(held.dlperf, numbers.fastest)
    way = _Way("raise", bid, held.disk_rate, own, _raised_hours(held, work), hazard)
    option = _over_horizon(way, work, numbers)
    reason = Reason("raise_bid", f"raise the bid from {held.gpu_rate} to {bid} to beat {beat}")
    return option, Proposal(slot.slot, IntentKind.REBID, reason, lease=held, bid=bid)


def _move(
    slot: SlotView, held: Lease, work: Workload, best: Candidate, numbers: Numbers
) -> list[tuple[Option, Proposal]]:
    if not numbers.may_move or not may_leave_at_a_price(held, work) or not _has_moves_left(slot, held, best):
        return []
    reckoning = best.reckoning
    way = _Way(
        "on_demand" if best.way.tenure is Tenure.ON_DEMAND else "move",
        best.way.rate,
        best.offer.disk_rate(work.disk_gb),
        speed(best.offer.dlperf, numbers.fastest or held.dlperf),
        reckoning.loading_hours,
        reckoning.hazard,
        moved=reckoning.traffic_dollars,
        lost_work=_lost_work_dollars(held, work),
    )
    option = _over_horizon(way, work, numbers)
    sentence = f"move to host {best.offer.host_id} at {best.way.rate} {best.way.tenure.value}"
    return [(option, go(slot, best, Reason("move", sentence)))]


def go(slot: SlotView, best: Candidate, reason: Reason) -> Proposal:
    """Return the move of a slot to `best`; first whatever could start the lost lease again is cancelled."""
    held = slot.lease
    may_start = held is not None and slot.down is not None and held.tenure is Tenure.INTERRUPTIBLE
    if held is None or not may_start or held.paused_by_us or held.interrupted_by is Cause.HOST_OFFLINE:
        return Proposal(slot.slot, IntentKind.RENT, reason, candidate=best)
    sentence = f"{reason.sentence}; first make sure that the old lease cannot start by itself"
    cancel = Reason("cancel_start", sentence, reason.options)
    return Proposal(slot.slot, IntentKind.PAUSE, cancel, candidate=best, lease=held)


def may_go(slot: SlotView, work: Workload, best: Candidate) -> bool:
    """Return whether a slot may leave its lease for `best`: its disk may be lost, and it has moves left today."""
    held = slot.lease
    return held is None or (may_leave(held, work) and _has_moves_left(slot, held, best))


def _has_moves_left(slot: SlotView, held: Lease, best: Candidate) -> bool:
    if held.interrupted_by in NO_RETURN:
        return True
    return slot.runs < (MOST_RUNS if best.way.tenure is Tenure.ON_DEMAND else MOST_RUNS - 1)


def ends_soon(held: Lease, now: datetime) -> bool:
    """Return whether the host of a lease leaves the market so soon that the workload should be elsewhere by then."""
    return held.ends_at is not None and held.ends_at - now < LEAVE_BEFORE


def leave(slot: SlotView, work: Workload, best: Candidate | None, now: datetime) -> Proposal | None:
    """Return the move of a running lease whose host leaves the market; the new one runs before the old goes."""
    held = slot.lease
    if held is None or held.state is not LeaseState.RUNNING or slot.arriving is not None or not ends_soon(held, now):
        return None
    when = f"host {held.host_id} leaves the market at {held.ends_at:%Y-%m-%d %H:%M} UTC"
    if not may_leave(held, work):
        return _hold(slot, "ends_soon", f"{when} with the only checkpoint on its disk: copy it, or set may_lose_disk")
    if best is None:
        return _hold(slot, "ends_soon", f"{when}, and no offer fits to move to")
    options = (Option("move", best.reckoning.per_useful_hour, best.reckoning.terms()),)
    sentence = f"{when}; move to host {best.offer.host_id} at {best.way.rate} {best.way.tenure.value} while it runs"
    return Proposal(slot.slot, IntentKind.RENT, Reason("end_date", sentence, options), candidate=best)


def _lost_work_dollars(held: Lease, work: Workload) -> float:
    """Return the cost of repeating the work on a left disk at its rate: all since it was opened.

    Where the bucket has its last checkpoint, and it is known when that was taken: all since then.
    """
    if not held.has_run or work.checkpoint.place is not CheckpointPlace.DISK:
        return 0.0
    taken = held.checkpoint_taken_at if is_carried(held, work) else None
    return max((held.state_since - (taken or held.opened_at)) / _HOUR, 0.0) * held.gpu_rate.dollars


@dataclass(frozen=True, slots=True)
class _Way:
    """One way on after a loss, to be priced over the horizon."""

    name: str
    rate: UsdPerHour
    disk_rate: UsdPerHour
    speed: float
    """The DLPerf over that of the fastest card the workload names, or else of the lease that was lost, at most 1."""
    start_hours: float
    hazard: float = 0.0
    moved: float = 0.0
    """Dollars that are paid for the data that the new host fetches."""
    lost_work: float = 0.0
    """Dollars that doing the lost work again costs."""


def _over_horizon(way: _Way, work: Workload, numbers: Numbers) -> Option:
    """Price one way over the horizon.

    After the start it runs; each loss idles `TROUBLE_HOURS`, repeats the restore and loses half a checkpoint interval.
    Useful hours count by `speed`: an hour on a slower card is worth less, none more than the operator said an hour is
    worth.
    """
    left = max(HORIZON_HOURS - way.start_hours, 0.0)
    losses = way.hazard * left / (1.0 + way.hazard * TROUBLE_HOURS)
    running = left - losses * TROUBLE_HOURS
    restore = (losses + 1.0) * work.checkpoint.restore.total_seconds() / 3600 if running > 0 else 0.0
    lost = losses * work.checkpoint.interval.total_seconds() / 7200
    useful = max(running - restore - lost, 0.0) * way.speed
    worth = numbers.worth.dollars * (HORIZON_HOURS - useful)
    dollars = way.rate.dollars * running + way.disk_rate.dollars * HORIZON_HOURS + way.moved + way.lost_work + worth
    terms = (
        Term("price", way.rate.dollars, "$/h"),
        Term("gpu", way.rate.dollars * running, "$"),
        Term("disk", way.disk_rate.dollars * HORIZON_HOURS, "$"),
        Term("data to move", way.moved, "$"),
        Term("lost work", way.lost_work, "$"),
        Term("useful", useful, "h"),
        Term("worth of the other hours", worth, "$"),
        Term("speed", way.speed, ""),
        Term("interruptions", losses, ""),
    )
    # Waiting is not priced by what follows it: its terms say nothing about how long it would last.
    holds = (Term("chance to hold it", math.exp(-way.hazard * left), ""),) if way.hazard else ()
    return Option(way.name, dollars, terms + holds)


def _hold(slot: SlotView, code: str, sentence: str) -> Proposal:
    return Proposal(slot.slot, None, Reason(code, sentence))
