"""Uses slack where that is expected to save most, and rents on demand while the deadline requires it.

It chooses between waiting, interruptible capacity and on-demand by the expected cost of finishing in time
(`agent.decide.deadline.single_pool_policy`). The cost uses hazards that fall with age, and the evidence of this market.
With `learn = false` two rules of slack choose instead.

Invariants:
1. From the last call on only on-demand is rented, even if something else is cheaper.
2. An attempt at interruptible capacity begins only if on-demand would still be in time after its failure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import ClassVar

from pydantic import Field

from agent.decide.deadline import deadline_costs, on_demand_fallback, slack
from agent.decide.deadline import deadline_progress as tasks
from agent.decide.moves import bid_decay, recovery, voluntary_move
from agent.decide.moves.auctions import notice_move, value_upkeep, waiting_bid
from agent.decide.pricing import bidding, offer_terms, useful_hour
from agent.decide.strategy import Candidate, Duration, Params, Proposal, SlotView, View, duration
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import only_copy
from agent.domain.work.decision import WAITS, Option, Reason, Term

LOOK_AT = 64
"""The most offers to look at for one that is fast enough."""
_HOUR = timedelta(hours=1)


class DeadlineParams(Params):
    """The numbers of `deadline`; deadline.toml explains both ends of each."""

    learn: bool = True
    """Choose by the expected cost of finishing in time; false: by the two rules that follow."""
    slack_share: float = Field(default=0.1, ge=0, le=10)
    """Without interruptible capacity, rent on demand when the slack is below this share of the remaining work."""
    pace: float = Field(default=0.0, ge=0, le=1)
    """Without interruptible capacity, rent on demand when the work is behind this share of the straight line."""
    reserve: Duration = duration("10m")
    """Time kept free before the last instant."""
    start_delay: Duration = duration("20m")
    """Time kept free for a start of on-demand."""
    headroom: float = Field(default=0.1, ge=0, le=4)
    """Bid at most this share of the floor above it."""
    ceiling: float = Field(default=0.9, gt=0, le=1)
    """Never bid more than this share of the same offer's ask."""
    raise_headroom: float = Field(default=0.05, ge=0, le=4)
    """To outbid a rival, bid this share of its price above it."""
    least_gain: float = Field(default=0.05, ge=0, le=1)
    """Raise or move only if that is cheaper than waiting by this share of the cost of waiting."""
    return_after: Duration = duration("30m")
    """How long an on-demand lease runs before the slot may move away."""
    return_gain: float = Field(default=0.05, ge=0, le=1)
    """The move away from on-demand must save at least this share of the cost of staying."""
    return_slack: Duration = duration("30m")
    """Slack that must remain after a move away from on-demand that fails."""
    lower_after: Duration = duration("45m")
    """Lower a raised bid after this long without an interruption."""
    lower_step: float = Field(default=0.5, ge=0, le=1)
    """Each step lowers the bid by this share of the distance to the host's floor plus headroom."""

    def kept_free(self) -> tuple[timedelta, timedelta]:
        """Return the times that are kept free: `reserve` and `start_delay`."""
        return self.reserve, self.start_delay


@dataclass(frozen=True, slots=True)
class _Grounds:
    """The grounds of a decision: the view, the numbers, the work, the candidates, and the outlook."""

    view: View
    params: DeadlineParams
    task: tasks.Task
    bid: Candidate | None
    ask: Candidate | None
    outlook: slack.Outlook
    bids: offer_terms.Bids
    """The way of bidding for interruptible capacity."""

    @property
    def start(self) -> float:
        """Hours that a start of interruptible capacity takes."""
        loading = self.bid.reckoning.loading_hours if self.bid is not None else 0.0
        return max(self.outlook.start, loading)

    @property
    def may_try(self) -> bool:
        """Whether there is time for an attempt at interruptible capacity that fails."""
        return self.outlook.may_try(self.start)

    def by_slack(self, tenure: Tenure | None) -> Tenure | None:
        """Return the next tenure by the rules of slack; `tenure` is the present one."""
        task, params = self.task, self.params
        is_behind = slack.is_behind(task.done, task.deadline.hours, task.line, params.pace)
        look = slack.Look(tenure, self.bid is not None, is_behind, self.start)
        return slack.choose(self.outlook, look, params.slack_share, params.return_slack / _HOUR)

    def expected_costs(self, slot: SlotView) -> deadline_costs.ExpectedCosts | None:
        """Return the choice by expected cost; None without `learn`, or without an on-demand candidate."""
        if not self.params.learn or self.ask is None or self.task.todo <= 0 or self.outlook.is_last_call:
            return None
        lease, bid, learned = slot.lease, self.bid, self.view.learned
        job = deadline_costs.Job(self.task.span, self.task.deadline.hours / self.outlook.speed)
        runs = lease is not None and slot.down is None and lease.state is LeaseState.RUNNING
        tenure = lease.tenure if lease is not None and runs else None
        loading = bid.reckoning.loading_hours if bid is not None else 0.0
        idle_since = slot.down.since if slot.down is not None else slot.empty_since
        since = idle_since if bid is None else None
        age = (self.view.now - since) / _HOUR if since is not None else None
        on_demand = self.ask.way.rate
        if lease is not None and tenure is Tenure.ON_DEMAND:
            on_demand = self.task.rate(lease, self.outlook.speed)
        prices = deadline_costs.Prices(on_demand, bid.way.rate if bid is not None else learned.price)
        seen = deadline_costs.Held(tenure, bid is not None, age, loading)
        return deadline_costs.of(self.outlook, job, seen, prices, learned)

    def reason(self, code: str, sentence: str, *options: Option) -> Reason:
        """Return a reason that also states the slack and when it ends."""
        outlook = self.outlook
        if self.is_over:
            when = "the deadline cannot be met, as far as is known"
        else:
            when = f"slack {outlook.slack:.2f} h: on-demand at the latest from {outlook.switch_at:%Y-%m-%d %H:%M} UTC"
        finish = _finish(outlook, self.ask.way.rate.dollars if self.ask is not None else 0.0)
        return Reason(code, f"{sentence}; {outlook.todo:.2f} h of work left, {when}", (*options, finish))

    def reason_of(self, lease: Lease, code: str, sentence: str) -> Reason:
        """Return a reason that also states when a lease on demand finishes the work, at its own speed."""
        outlook = on_demand_fallback.of_lease(lease, self.task, self.outlook)
        when = (
            f"done {outlook.slack:.2f} h before the deadline" if outlook.slack >= 0 else f"{-outlook.slack:.2f} h late"
        )
        finish = _finish(outlook, lease.gpu_rate.dollars)
        return Reason(code, f"{sentence}; {outlook.todo:.2f} h of work left, {when} at its speed", (finish,))

    @property
    def is_over(self) -> bool:
        """Whether on-demand would be late even if it ran now."""
        return self.outlook.todo / self.outlook.speed > self.outlook.left


def _finish(outlook: slack.Outlook, rate: float) -> Option:
    """Return the cost of finishing on demand at `rate` $/h, with the terms of the outlook."""
    terms = (
        Term("until the deadline", outlook.left, "h"),
        Term("work left", outlook.todo, "h"),
        Term("speed", outlook.speed, ""),
        Term("start", outlook.start, "h"),
        Term("restart", outlook.restart, "h"),
        Term("reserve", outlook.reserve, "h"),
        Term("slack", outlook.slack, "h"),
    )
    return Option("finish on demand", rate * outlook.needed, terms)


class Deadline:
    """The expected cost or a rule of slack decides, until Uniform Progress's last call."""

    params: ClassVar[type[Params]] = DeadlineParams

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        """Return a proposal for each slot of a workload with a deadline; without a deadline each slot is held."""
        if not isinstance(params, DeadlineParams):
            raise TypeError("deadline runs on DeadlineParams")
        if view.task is None:
            sentence = f"write a [workloads.{view.workload.name}.deadline] table, or choose another strategy"
            return [Proposal(slot.slot, None, Reason("no_deadline", sentence)) for slot in view.slots]
        return [_decide(slot, _grounds(view, view.task, slot, params)) for slot in view.slots]


def _grounds(view: View, task: tasks.Task, slot: SlotView, params: DeadlineParams) -> _Grounds:
    work = view.workload
    bids = offer_terms.Bids(work.prices, work.disk_gb, params.headroom, params.ceiling, rivals=view.rivals)
    bids = bids.under(view.limit_markets, work.value_per_hour)
    bid = next(iter(view.ranking(bids)), None)
    asks = islice(view.ranking(offer_terms.Asks(work.prices, work.disk_gb)), LOOK_AT)
    numbers = on_demand_fallback.FallbackParams(params.reserve, params.start_delay)
    outlook, ask = on_demand_fallback.cheapest_in_time(view, task, asks, slot.lease, numbers)
    return _Grounds(view, params, task, bid, ask, outlook, bids)


def _decide(slot: SlotView, grounds: _Grounds) -> Proposal:
    lease = slot.lease
    if grounds.task.todo <= 0 and not _runs(lease):
        return _hold(slot, grounds, "work_done", tasks.why_done(slot.slot.workload))
    if slot.arriving is not None:
        return _await(slot, slot.arriving, grounds)
    if following := value_upkeep.follow_value(slot, grounds.view, fastest=0.0):
        return following
    if lease is None or slot.down is not None:
        return value_upkeep.while_down(_without(slot, grounds), slot, grounds.view, fastest=0.0)
    if lease.tenure is Tenure.ON_DEMAND:
        return _on_demand(slot, lease, grounds)
    if grounds.outlook.is_last_call and grounds.task.todo > 0:
        return _switch(slot, grounds) or _hold(slot, grounds, "no_on_demand", "no on-demand offer fits; it runs on")
    leaving = _under_notice(slot, lease, grounds) or _leave(slot, lease, grounds)
    return leaving or _calm(slot, lease, grounds)


def _runs(lease: Lease | None) -> bool:
    return lease is not None and lease.is_live


def _await(slot: SlotView, arriving: Lease, grounds: _Grounds) -> Proposal:
    """Return a hold while a move is under way, or the release of an interruptible one that has no time left."""
    if on_demand_fallback.is_too_late(arriving, grounds.view.workload, grounds.outlook):
        reason = grounds.reason("too_late", f"there is no time left to wait for host {arriving.host_id}")
        return Proposal(slot.slot, IntentKind.RELEASE, reason, lease=arriving)
    return _hold(slot, grounds, "moving", f"waits for host {arriving.host_id} to be ready")


def _without(slot: SlotView, grounds: _Grounds) -> Proposal:
    """Return the proposal for a slot that does not run: on demand if it must, else interruptible, else wait."""
    bid = grounds.bid if grounds.may_try or grounds.ask is None else None
    expected = grounds.expected_costs(slot)
    if expected is not None:
        return _expected(slot, bid, expected, grounds)
    if grounds.by_slack(None) is Tenure.ON_DEMAND:
        switch = _switch(slot, grounds)
        if switch is not None:
            return switch
    return _fill(slot, bid, grounds) if slot.lease is None else _recover(slot, slot.lease, bid, grounds)


def _expected(
    slot: SlotView, bid: Candidate | None, expected: deadline_costs.ExpectedCosts, grounds: _Grounds
) -> Proposal:
    """Return the proposal with the least expected cost; an attempt without time for it never begins."""
    if expected.choice is Tenure.ON_DEMAND or (bid is None and not grounds.may_try):
        switch = _switch(slot, grounds)
        if switch is not None:
            return _with_costs(switch, expected)
    tried = bid if expected.choice is Tenure.INTERRUPTIBLE else None
    proposal = _fill(slot, tried, grounds) if slot.lease is None else _recover(slot, slot.lease, tried, grounds)
    return _with_costs(proposal, expected)


def _with_costs(proposal: Proposal, expected: deadline_costs.ExpectedCosts) -> Proposal:
    """Return a proposal that also has the expected cost of each choice."""
    why = proposal.reason
    return replace(
        proposal,
        reason=replace(why, sentence=f"{why.sentence}; {expected.sentence}", options=(*expected.options, *why.options)),
    )


def _fill(slot: SlotView, bid: Candidate | None, grounds: _Grounds) -> Proposal:
    candidates = [each for each in (bid, grounds.ask) if each is not None]
    waiting = waiting_bid.propose(slot, grounds.view, grounds.bids) if grounds.bid is None else None
    if bid is None and waiting is not None:
        return replace(waiting, reason=grounds.reason(waiting.reason.code, waiting.reason.sentence))
    if bid is None:
        code = WAITS if grounds.view.has_offers else "no_view"
        return _hold(slot, grounds, code, "no interruptible capacity fits within the price")
    best = min(candidates, key=lambda each: each.reckoning.per_useful)
    option = Option("chosen", best.reckoning.per_useful_hour, best.reckoning.terms())
    sentence = f"rent host {best.offer.host_id} of {best.offer.market} at {best.way.rate} {best.way.tenure.value}"
    sentence += best.way.under_limit
    return Proposal(slot.slot, IntentKind.RENT, grounds.reason("best_offer", sentence, option), candidate=best)


def _switch(slot: SlotView, grounds: _Grounds) -> Proposal | None:
    """Return the move to on-demand, even without moves left today; None without a candidate or if it must stay."""
    ask, lease = grounds.ask, slot.lease
    if ask is None or (lease is not None and not only_copy.may_leave(lease, grounds.view.workload)):
        return None
    if lease is not None and lease.tenure is Tenure.ON_DEMAND and lease.paused_by_us:
        return None
    cause = "no time is left for an attempt that fails"
    if grounds.may_try:
        cause = "that is expected to cost least" if grounds.params.learn else "slack is short, or the work is behind"
    why = "it must" if grounds.outlook.is_last_call else cause
    sentence = f"go on demand on host {ask.offer.host_id} of {ask.offer.market} at {ask.way.rate}: {why}"
    option = Option("on_demand", ask.reckoning.per_useful_hour, ask.reckoning.terms())
    return recovery.move_to(slot, ask, grounds.reason("deadline", sentence, option))


def _recover(slot: SlotView, lease: Lease, bid: Candidate | None, grounds: _Grounds) -> Proposal:
    """Return the recovery of a lost lease by cost: wait, raise, start again or move.

    The caller has checked the slack.
    """
    view = grounds.view
    here = useful_hour.contested_hazard(view.hosts.get(lease.host), view.market_hazard)
    elsewhere = [] if bid is None else [bid]
    proposal = recovery.recover(slot, view.workload, elsewhere, here, _numbers(lease, grounds), view.now)
    return replace(
        proposal, reason=grounds.reason(proposal.reason.code, proposal.reason.sentence, *proposal.reason.options)
    )


def _under_notice(slot: SlotView, lease: Lease, grounds: _Grounds) -> Proposal | None:
    """Return the replacement of a lease that the market ends, or a hold; None without a notice."""
    if lease.notice_at is None:
        return None
    view = grounds.view
    bid = grounds.bid if grounds.may_try else None
    if lease.bid_limit is not None and bid is not None:
        bid = notice_move.elsewhere(lease, view.ranking(grounds.bids))
    others = [each for each in (bid, grounds.ask) if each is not None]
    here = useful_hour.contested_hazard(view.hosts.get(lease.host), view.market_hazard)
    return notice_move.propose(slot, view.workload, others, here, _numbers(lease, grounds))


def _numbers(lease: Lease, grounds: _Grounds) -> recovery.RecoveryParams:
    view, params = grounds.view, grounds.params
    return recovery.RecoveryParams(
        ceiling=bidding.ceiling(view.workload.price_of(lease.gpu), lease.disk_rate, lease.ask, params.ceiling),
        raise_headroom=params.raise_headroom,
        least_gain=params.least_gain,
        may_move=True,
        may_raise=True,
        rivals=view.rivals,
        starts_by_itself=view.starts_by_itself(lease),
        worth=view.workload.value_of(lease.gpu),
    )


def _on_demand(slot: SlotView, lease: Lease, grounds: _Grounds) -> Proposal:
    """Return a hold on demand, or a move away.

    That is the move back to interruptible capacity if a failure would still leave slack, else the move to a faster
    offer if the lease is too slow.
    """
    view, params = grounds.view, grounds.params
    leaving = _leave(slot, lease, grounds)
    if leaving is not None:
        return leaving
    is_settled = lease.state is LeaseState.RUNNING and view.now - lease.state_since >= params.return_after
    rest = grounds.task.todo / grounds.task.of_lease(lease)
    if is_settled and rest > 0 and grounds.by_slack(lease.tenure) is Tenure.INTERRUPTIBLE:
        horizon = min(rest, voluntary_move.RETURN_HOURS)
        back = voluntary_move.move_to_cheaper(slot, view.workload, grounds.bid, params.return_gain, horizon)
        expected = grounds.expected_costs(slot) if back is not None else None
        if back is not None and _is_back(expected):
            why = grounds.reason(back.reason.code, back.reason.sentence, *back.reason.options)
            return (
                _with_costs(replace(back, reason=why), expected) if expected is not None else replace(back, reason=why)
            )
    on = grounds.reason_of(lease, lease.state.value, f"{lease.state.value} on demand")
    return _hurry(slot, lease, grounds) or Proposal(slot.slot, None, on)


def _hurry(slot: SlotView, lease: Lease, grounds: _Grounds) -> Proposal | None:
    """Return the move of an on-demand lease that will be late to an offer that is in time; None without need or way."""
    ask, work = grounds.ask, grounds.view.workload
    if ask is None or not on_demand_fallback.is_too_slow(lease, grounds.task, grounds.outlook):
        return None
    if not recovery.may_go(slot, work, ask):
        return None
    sentence = f"move to host {ask.offer.host_id} of {ask.offer.market} at {ask.way.rate} on demand: "
    sentence += on_demand_fallback.why_too_slow(lease, grounds.task)
    option = Option("on_demand", ask.reckoning.per_useful_hour, ask.reckoning.terms())
    return recovery.move_to(slot, ask, grounds.reason("deadline", sentence, option))


def _is_back(expected: deadline_costs.ExpectedCosts | None) -> bool:
    """Return whether moving back is worth its slack; without `learn` the price alone decides."""
    return expected is None or expected.choice is Tenure.INTERRUPTIBLE


def _leave(slot: SlotView, lease: Lease, grounds: _Grounds) -> Proposal | None:
    """Return the move of a lease whose host leaves the market."""
    if not recovery.ends_soon(lease, grounds.view.now):
        return None
    best = grounds.bid if grounds.may_try else grounds.ask
    return recovery.leave_ending_host(slot, grounds.view.workload, best or grounds.ask, grounds.view.now)


def _calm(slot: SlotView, lease: Lease, grounds: _Grounds) -> Proposal:
    params = grounds.params
    numbers = bid_decay.BidDecayParams(params.headroom, params.lower_step, params.lower_after)
    proposal = bid_decay.lower(slot, lease, numbers, grounds.view.now)
    return replace(proposal, reason=grounds.reason(proposal.reason.code, proposal.reason.sentence))


def _hold(slot: SlotView, grounds: _Grounds, code: str, sentence: str) -> Proposal:
    return Proposal(slot.slot, None, grounds.reason(code, sentence))
