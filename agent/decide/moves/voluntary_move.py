"""Voluntary moves: leave a healthy lease for a cheaper offer only if the saving covers the move and moves remain."""

import math
from dataclasses import dataclass
from datetime import timedelta

from agent.decide.moves import recovery
from agent.decide.pricing import useful_hour
from agent.decide.pricing.offer_terms import speed
from agent.decide.pricing.worth import net_value
from agent.decide.strategy import Candidate, Proposal, SlotView
from agent.domain.market.tenure import Tenure
from agent.domain.money import MICROS
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.work import only_copy
from agent.domain.work.decision import Option, Reason, Term
from agent.domain.work.workload import CheckpointPlace, Workload, WorkloadKind

RETURN_HOURS = 6.0
"""Horizon of the comparison with a cheaper offer: about a lease's life in the calibrated market."""

MOST_RETURNS = 7
"""From this many leases a day on, an on-demand lease is not left for a bid. The day's other moves are for interruptions
and for cheaper asks, which need no way back."""
MOST_LEAVES = 7
"""From this many leases a day on, a healthy interruptible lease is not left for a cheaper offer."""
MOVE_WORTH_HOURS = 0.03
"""The cost of a voluntary move besides its own price, in hours at what an hour of the work is worth: one move less for
the day, and the risk of a worse host. Chosen in rehearsals."""

_HOUR = timedelta(hours=1)


def move_to_cheaper(
    slot: SlotView,
    work: Workload,
    best: Candidate | None,
    least_gain: float,
    horizon_hours: float = RETURN_HOURS,
    market_loss_rate: float = 0.0,
    *,
    fastest: float = 0.0,
) -> Proposal | None:
    """Return the move from a healthy lease to a cheaper offer, or None if staying is as good.

    With a stated value of an hour, the gain is of net value, not of cost (`_by_value`).

    The old lease goes on until the new one runs, so loading is paid twice and idles nothing. The restore and half a
    checkpoint interval are repeated. Staying and moving are priced in dollars over the useful hours that the new lease
    is expected to last within the horizon. A move also has a price of its own, twice that if on-demand is left for a
    bid that may need a way back. The gain must be at least `least_gain` of the cost of staying. `market_loss_rate` is
    the rate of losses at the present place of an interruptible lease. With `fastest` work on a slower card counts
    as less too, not only work on a faster one as more. The new place is priced by the file's restore, so that a shorter
    one that hosts claim never causes a move.
    """
    lease = slot.lease
    if lease is None or best is None or not only_copy.may_leave(lease, work) or not _may_better(slot, lease, best):
        return None
    there = best.reckoning.by(work.checkpoint)
    # What the new lease does not do before its window closes saves nothing.
    horizon_hours = min(horizon_hours, slot.hours_left)
    hours = min(useful_hour.stay(there.hazard, horizon_hours)[0], _task_hours_left(lease, work))
    if hours <= 0.0:
        return None
    if work.value_per_hour is not None:
        return _by_value(slot, lease, work, best, _Span(hours, horizon_hours, least_gain, market_loss_rate), fastest)
    stay = hours * (rate := _per_useful_hour(lease, work, market_loss_rate, horizon_hours))
    scale = _scale(lease, best, fastest)
    move = (hours * there.per_useful_hour + _once(lease, work, best, rate)) * scale
    if stay - move <= least_gain * stay:
        return None
    options = (Option("stay", stay, (Term("per hour", lease.gpu_rate.dollars, "$/h"),)), Option("move", move))
    sentence = f"{_route(lease, best)}: ${move:.3f} over {hours:.1f} h against ${stay:.3f}"
    sentence += f", for the same work, done {1 / scale:.2f} times as fast there" if scale < 1 else ""
    return Proposal(slot.slot, IntentKind.RENT, Reason("return", sentence, options), candidate=best)


def _once(lease: Lease, work: Workload, best: Candidate, rate: float) -> float:
    """Return the dollars of one move: loading, repeated work, traffic, and the price of the move itself."""
    there = best.reckoning.by(work.checkpoint)
    once = rate * (there.loading_hours + _redone(lease, work)) + there.traffic_dollars
    return once + _moves(lease, best) * MOVE_WORTH_HOURS * work.value_of(lease.gpu).dollars


def _redone(lease: Lease, work: Workload) -> float:
    """Return the hours of the restore and of the work that a move repeats.

    A batch without checkpoints begins again. A service has no work to repeat.
    """
    checkpoint = work.checkpoint
    if work.kind is WorkloadKind.BATCH and checkpoint.place is CheckpointPlace.NONE and lease.run_since is not None:
        return max((lease.accrued_until - lease.run_since) / _HOUR, checkpoint.restore / _HOUR)
    return (checkpoint.restore + checkpoint.interval / 2) / _HOUR


def _task_hours_left(lease: Lease, work: Workload) -> float:
    """Return the most hours that an array's task still takes, by the file's `task_hours`; inf without that figure."""
    if work.array is None or work.array.task_hours is None or lease.run_since is None:
        return math.inf
    return work.array.task_hours - (lease.accrued_until - lease.run_since) / _HOUR


def _moves(lease: Lease, best: Candidate) -> int:
    """Return the number of moves to pay for: a bid in place of on-demand may need a way back."""
    return 2 if _is_bid(best) and lease.tenure is Tenure.ON_DEMAND else 1


def _scale(lease: Lease, best: Candidate, fastest: float) -> float:
    """Return the time of the same work at the new place, as a share of its time here."""
    scale = lease.dlperf / best.offer.dlperf if lease.dlperf and best.offer.dlperf else 1.0
    return scale if fastest > 0 else min(scale, 1.0)


def _route(lease: Lease, best: Candidate) -> str:
    return (
        f"move from host {lease.host_id} at {lease.gpu_rate} {lease.tenure.value} to host {best.offer.host_id} at "
        f"{best.way.rate} {best.way.tenure.value}"
    )


@dataclass(frozen=True, slots=True)
class _Span:
    """The hours that the new lease is expected to last, the horizon, the least gain, and the losses per hour here."""

    hours: float
    horizon: float
    least_gain: float
    loss_rate: float


def _by_value(
    slot: SlotView, lease: Lease, work: Workload, best: Candidate, span: _Span, fastest: float
) -> Proposal | None:
    """Return the move if it earns more net value than staying, by `least_gain` of the cost of staying.

    The move pays its loading and its traffic, repeats work, and costs the price of a move.
    """
    worth, there = work.value_of(lease.gpu), best.reckoning.by(work.checkpoint)
    cost = _hourly(lease, work)
    full = worth.dollars * speed(lease.dlperf, fastest, math.inf)
    useful, trouble = 1.0, 0.0
    if lease.tenure is Tenure.INTERRUPTIBLE:
        hours, loss = useful_hour.stay(span.loss_rate, span.horizon)
        useful = 1.0 - loss * min(work.checkpoint.interval / _HOUR, hours) / 2 / hours
        trouble = loss / hours * net_value.TROUBLE_HOURS
    stay = span.hours * (full * useful - cost) / (1.0 + trouble)
    once = best.way.rate.dollars * there.loading_hours + there.traffic_dollars
    once += full * _redone(lease, work) + _moves(lease, best) * MOVE_WORTH_HOURS * worth.dollars
    move = span.hours * net_value.per_hour(there, worth, fastest) - once
    if move - stay <= span.least_gain * span.hours * cost:
        return None
    options = (Option("stay", -stay), Option("move", -move))
    sentence = f"{_route(lease, best)}: ${move:.3f} of net value over {span.hours:.1f} h against ${stay:.3f}"
    return Proposal(slot.slot, IntentKind.RENT, Reason("return", sentence, options), candidate=best)


def _is_bid(best: Candidate) -> bool:
    return best.way.tenure is Tenure.INTERRUPTIBLE


def _may_better(slot: SlotView, lease: Lease, best: Candidate) -> bool:
    """Return whether the day's moves allow a voluntary one, and it changes the place or at least the tenure."""
    if lease.tenure is best.way.tenure and lease.host.is_same_place(best.offer.host):
        return False
    if lease.tenure is Tenure.INTERRUPTIBLE:
        return slot.runs < MOST_LEAVES
    return slot.runs < (MOST_RETURNS if _is_bid(best) else recovery.MOST_RUNS)


def _hourly(lease: Lease, work: Workload) -> float:
    """Return the dollars of an hour of staying, with the checkpoints that leave the host."""
    egress = useful_hour.uploaded_gb_an_hour(work.checkpoint) * lease.egress_micros_per_gb / MICROS
    return (lease.gpu_rate + lease.disk_rate).dollars + egress


def _per_useful_hour(lease: Lease, work: Workload, market_loss_rate: float, horizon_hours: float) -> float:
    """Return dollars per useful hour of staying; a bid includes its expected losses."""
    rate = _hourly(lease, work)
    if lease.tenure is not Tenure.INTERRUPTIBLE:
        return rate
    hours, loss = useful_hour.stay(market_loss_rate, horizon_hours)
    return rate * hours / (hours - loss * min(work.checkpoint.interval / _HOUR, hours) / 2)
