"""Deadline jobs on several markets: the choice of `multi_pool_policy` for the slot of a view, in leases and offers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from agent.decide.deadline import (
    availability_by_market,
    deadline_costs,
    multi_pool_policy,
    on_demand_fallback,
    regimes,
    slack,
)
from agent.decide.deadline import deadline_progress as tasks
from agent.decide.strategy import Candidate, Proposal, SlotView, View
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Option

LEAST_GAP = 1 / 60
COARSE = 0.25
"""The span and slack of a job are rounded up to multiples of this many hours, so that similar jobs share a table."""
_HOUR = timedelta(hours=1)
_ROUNDING = 1e-6
_RUNS = frozenset({LeaseState.STARTING, LeaseState.RUNNING})


@dataclass(frozen=True, slots=True)
class MarketChoice:
    """The next choice: tenure, candidate if there is one, market, and the cost of each possible choice."""

    tenure: Tenure | None
    market: str
    candidate: Candidate | None
    options: tuple[Option, ...]
    outlook: slack.Outlook
    is_last_call: bool = False
    """Whether on-demand must be rented now, whatever runs and however many moves the day had."""
    why_left: str = ""
    """Why the lease that runs on demand is left for the on-demand candidate; empty if it is not."""

    @property
    def sentence(self) -> str:
        """Return a sentence about the costs and the slack."""
        costs = ", ".join(f"${option.dollars:.2f} {option.name}" for option in self.options)
        expected = f"expected to finish for {costs}; " if costs else ""
        return f"{expected}{self.outlook.todo:.2f} h of work left, slack {self.outlook.slack:.2f} h"


def fallback(
    view: View, slot: SlotView, numbers: on_demand_fallback.FallbackParams, asks: Sequence[Candidate]
) -> tuple[tasks.Task, slack.Outlook, Candidate] | None:
    """Return the task, the outlook on its fallback and the on-demand offer for that.

    None unless this is a deadline job on several markets with an on-demand offer.
    """
    task = view.task
    if task is None or task.todo <= 0 or len(view.by_market) < 2:  # noqa: PLR2004 - one market is no choice
        return None
    outlook, ask = on_demand_fallback.cheapest_in_time(view, task, asks, _running(slot), numbers)
    return None if ask is None else (task, outlook, ask)


def choose(
    view: View,
    slot: SlotView,
    numbers: on_demand_fallback.FallbackParams,
    bids: Iterable[Candidate],
    asks: Sequence[Candidate],
    weighing: multi_pool_policy.MultiPoolParams = multi_pool_policy.SHIPPED,
) -> MarketChoice | None:
    """Return the next choice; None unless this is a deadline job on several markets with a choice.

    `bids` are all bids, best first: the first bid of one market may come after any number of bids of another.
    """
    known = fallback(view, slot, numbers, asks)
    if known is None:
        return None
    (task, outlook, ask), lease, names = known, _running(slot), tuple(sorted(view.by_market))
    if _is_last_call(lease, outlook):
        return MarketChoice(Tenure.ON_DEMAND, ask.offer.market, ask, (), outlook, is_last_call=True)
    best = _best(bids, names)
    rate = _on_demand(task, outlook, ask, lease)
    pools = [_pool(view, name, best[name], lease, rate, outlook) for name in names]
    moves = _moves(view, [best[name] for name in names], [_leaving_micros(name, best[name], asks) for name in names])
    # A lease that is released to wait leaves its checkpoint on its market. Carrying it elsewhere costs the same as
    # before.
    last = slot.lease.market if slot.lease is not None else slot.left
    where = names.index(last) if last in names else -1
    at = _standing(view, task, outlook, lease, where, names)
    pools = [
        replace(pool, egress=float(moves[where, place]) if where >= 0 else 0.0) for place, pool in enumerate(pools)
    ]
    choice = multi_pool_policy.choose(at, pools, rate, moves, numbers=weighing)
    market = _market_of(choice, names, lease, ask)
    candidate = best.get(market) if choice.tenure is Tenure.INTERRUPTIBLE else ask
    return MarketChoice(
        tenure=choice.tenure,
        market=market,
        candidate=candidate if choice.tenure else None,
        options=_options(choice.costs, names),
        outlook=outlook,
        why_left=_why_left(lease, task, outlook),
    )


def _market_of(choice: multi_pool_policy.Choice, names: Sequence[str], lease: Lease | None, ask: Candidate) -> str:
    """Return the market of a choice: a lease may run on one that the workload does not name any more."""
    if choice.tenure is not Tenure.INTERRUPTIBLE:
        return ask.offer.market
    return lease.market if choice.pool < 0 and lease is not None else names[choice.pool]


def _running(slot: SlotView) -> Lease | None:
    """Return the lease of a slot if it runs or starts."""
    return slot.lease if slot.lease is not None and slot.down is None and slot.lease.state in _RUNS else None


def _why_left(lease: Lease | None, task: tasks.Task, outlook: slack.Outlook) -> str:
    is_left = lease is not None and on_demand_fallback.is_too_slow(lease, task, outlook)
    return on_demand_fallback.why_too_slow(lease, task) if lease is not None and is_left else ""


def _is_last_call(lease: Lease | None, outlook: slack.Outlook) -> bool:
    """Return whether a slot that is not on demand must go there now.

    The kernel lets a lease that is warmed up run on: it takes every hour of running for an hour of work, so slack never
    shrinks while it runs. A live host may stall, be slow or fetch its image for hours. A lease under notice is as good
    as lost: another bid must leave time for on-demand if it fails.
    """
    if lease is not None and lease.tenure is Tenure.ON_DEMAND:
        return False
    is_ending = lease is not None and lease.notice_at is not None
    return outlook.slack < -_ROUNDING or (is_ending and not outlook.may_try(outlook.start))


def _best(bids: Iterable[Candidate], names: Sequence[str]) -> dict[str, Candidate | None]:
    """Return the first bid of each market."""
    found: dict[str, Candidate | None] = dict.fromkeys(names)
    for bid in bids:
        found[bid.offer.market] = found.get(bid.offer.market) or bid
        if None not in found.values():
            break
    return found


def is_running(slot: SlotView, choice: MarketChoice) -> bool:
    """Return whether a slot already runs the choice."""
    lease = _running(slot)
    if lease is None or lease.tenure is not choice.tenure:
        return False
    return not choice.why_left if choice.tenure is Tenure.ON_DEMAND else lease.market == choice.market


def _on_demand(task: tasks.Task, outlook: slack.Outlook, ask: Candidate, lease: Lease | None) -> float:
    """Return $/h on demand: the rate of a running lease, whose host has no offer meanwhile, else the offer's."""
    runs = lease is not None and lease.tenure is Tenure.ON_DEMAND
    return (task.rate(lease, outlook.speed) if lease is not None and runs else ask.way.rate).dollars


def _standing(
    view: View, task: tasks.Task, outlook: slack.Outlook, lease: Lease | None, where: int, names: Sequence[str]
) -> multi_pool_policy.JobState:
    overhead, todo = outlook.start + outlook.restart, outlook.todo / outlook.speed
    begun = lease is not None and lease.state is LeaseState.STARTING
    spent = (view.now - lease.opened_at) / _HOUR if lease is not None else 0.0
    span = max(task.span, outlook.left)
    return multi_pool_policy.JobState(
        left=max(outlook.left, 0.0),
        todo=todo,
        tenure=lease.tenure if lease is not None else None,
        pool=names.index(lease.market) if lease is not None and lease.market in names else -1,
        where=where,
        warming=max(overhead - spent, 0.0) if begun else 0.0,
        overhead=overhead,
        gap=max(outlook.reserve, LEAST_GAP),
        span=_coarse(span),
        # Work that is done faster than it was planned leaves more slack than the job began with.
        room=_coarse(max(span - task.deadline.hours / outlook.speed, outlook.left - todo, 0.0)),
    )


def _coarse(hours: float) -> float:
    # Without the rounding a sum that is a hair above a multiple would choose another table.
    return -(-(hours - _ROUNDING) // COARSE) * COARSE


def _pool(
    view: View, name: str, best: Candidate | None, lease: Lease | None, ask: float, outlook: slack.Outlook
) -> multi_pool_policy.Pool:
    known, task = view.by_market[name], view.task
    is_held = lease is not None and lease.market == name and lease.tenure is Tenure.INTERRUPTIBLE
    is_there, is_elsewhere = is_held or best is not None, lease is not None and not is_held
    belief = _belief(view, known, is_there=is_there, runs=is_elsewhere)
    if lease is not None and task is not None and is_held:
        return multi_pool_policy.Pool(task.rate(lease, outlook.speed).dollars, belief)
    if best is not None and task is not None:
        speed = task.speed(best.offer.gpu, best.offer.dlperf)
        return multi_pool_policy.Pool(best.way.rate.dollars * outlook.speed / speed, belief)
    return multi_pool_policy.Pool(
        known.price.dollars if known.price is not None else ask * deadline_costs.ASSUMED_RATIO, belief
    )


def _belief(view: View, known: availability_by_market.Known, *, is_there: bool, runs: bool) -> regimes.Belief:
    """Return the belief about a market, where a lease or a fitting bid `is_there`; `runs`: another market has a lease.

    While a slot runs, prices are searched once an hour, and in between nothing is in view: then the last look counts.
    A slot without a lease can rent nothing there, and has had nothing since that look. Capacity that a look counts and
    that no bid fits has been out of reach as long as it has been there.
    """
    belief, unseen = known.belief, (view.now - known.looked_at) / _HOUR
    if not is_there and not known.is_in_view:
        return belief if runs else replace(belief, is_up=False, age=unseen + (0.0 if belief.is_up else belief.age))
    if is_there and not belief.is_up:
        return replace(belief, is_up=True, age=0.0)
    return replace(belief, is_up=is_there)


def _moves(view: View, best: Sequence[Candidate | None], leaving: Sequence[int]) -> regimes.Array:
    """Return the dollars of carrying the checkpoint between markets, from the traffic prices of their offers."""
    size = view.workload.checkpoint.size_gb / 1e6
    up = np.array(leaving, dtype=np.float64)
    down = np.array([each.offer.traffic_down_micros_per_gb if each is not None else 0 for each in best])
    moves: regimes.Array = (up[:, None] + down[None, :]) * size
    np.fill_diagonal(moves, 0.0)
    return moves


def _leaving_micros(market: str, best: Candidate | None, asks: Sequence[Candidate]) -> int:
    """Return the price of a gigabyte that leaves a market: its own, and the operator's figure for its cloud.

    Where no bid fits, what is offered on demand there has the same figures.
    """
    shown = best or next((ask for ask in asks if ask.offer.market == market), None)
    return shown.offer.traffic_up_micros_per_gb + shown.offer.egress_micros_per_gb if shown is not None else 0


def _options(costs: Mapping[tuple[Tenure | None, int], float], names: Sequence[str]) -> tuple[Option, ...]:
    def name(tenure: Tenure | None, pool: int) -> str:
        if tenure is None:
            return "waiting"
        return f"interruptible on {names[pool]}" if tenure is Tenure.INTERRUPTIBLE else "on demand"

    return tuple(Option(name(*choice), cost) for choice, cost in costs.items())


def with_costs(proposal: Proposal, choice: MarketChoice) -> Proposal:
    """Return a proposal that also has the expected cost of each choice."""
    why = proposal.reason
    reason = replace(why, sentence=f"{why.sentence}; {choice.sentence}", options=(*choice.options, *why.options))
    return replace(proposal, reason=reason)
