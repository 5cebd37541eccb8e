"""Vetoes that outrank strategies, each with its reason: stale view, wrong clock, price, rate, budget, count.

Invariants:
1. A limit only strikes decisions that may raise spend. Release and pause always pass.
2. Money is set aside before it is spent: everything committed must fit every budget until the reserve's horizon.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from agent.decide.limits import committed_spend as standings
from agent.decide.limits import task_reserve
from agent.decide.limits.committed_spend import CommittedSpend, committed_by_fleet
from agent.domain import money
from agent.domain.fleet import Fleet, MarketView
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record import budget
from agent.domain.record.budget import EVERYTHING, SUMS, Budget, Kind, Scope, Thresholds, Window
from agent.domain.work.decision import Decision, Rebid, Rent, Resume, raises_spend, slot_of
from agent.domain.work.workload import Workload

__all__ = ["CommittedSpend", "Limits", "Strike", "committed_by_fleet", "over_budget", "strike"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that no strategy may exceed; None means no limit of that kind.

    `soft` are the thresholds of the whole fleet at which a person is warned. `budgets` are those of single markets and
    workloads. `reserve` is how far ahead money is set aside: a rent, raise or start must fit every budget for that
    long. `min_credit` is the floor of each market's account, `min_credit_of` that of a market with another one.
    """

    per_instance_hour: UsdPerHour | None = None
    per_hour: UsdPerHour | None = None
    per_day: Usd | None = None
    per_month: Usd | None = None
    instances: int | None = None
    total: Usd | None = None
    soft: Thresholds = Thresholds()
    budgets: Mapping[Scope, Budget] = field(default_factory=dict)
    reserve: timedelta = timedelta()
    min_credit: Usd | None = None
    min_credit_of: Mapping[str, Usd] = field(default_factory=dict)

    def scopes(self) -> tuple[Scope, ...]:
        """Return every scope with a budget: everything first, then markets, then workloads, by name."""
        named = sorted(self.budgets, key=lambda scope: (scope.kind.value, scope.name))
        return EVERYTHING, *named

    def hard(self, scope: Scope) -> Thresholds:
        """Return the hard thresholds of a scope."""
        if scope == EVERYTHING:
            return Thresholds(self.per_hour, self.per_day, self.per_month, self.total)
        return self.budgets.get(scope, Budget()).hard

    def soft_of(self, scope: Scope) -> Thresholds:
        """Return the warning thresholds of a scope."""
        if scope == EVERYTHING:
            return self.soft
        return self.budgets.get(scope, Budget()).soft

    def credit_floor(self, market: str) -> Usd | None:
        """Return the credit that a market's account must keep, None without a floor."""
        return self.min_credit_of.get(market, self.min_credit)


@dataclass(frozen=True, slots=True)
class Strike:
    """The reason why a decision may not be carried out now."""

    limit: str
    sentence: str


def over_budget(now_standing: CommittedSpend, limits: Limits, scope: Scope = EVERYTHING) -> Strike | None:
    """Return a strike if a budget of a scope is used up, else None. Then its running leases are paused too."""
    part, hard = now_standing.of(scope), limits.hard(scope)
    for window in SUMS:
        cap, spent = hard.amount(window), part.spent(window)
        if cap is not None and spent >= cap:
            sentence = f"{_whose(scope, window)} {spent} has reached the cap of {cap}"
            return Strike(scope.prefix + window.value, sentence)
    return None


def under_credit_floor(view: MarketView, limits: Limits) -> Strike | None:
    """Return a strike if a market's account is at its floor, else None. An empty account stops everything on it."""
    floor = limits.credit_floor(view.market)
    if floor is None or view.credit is None or view.credit > floor:
        return None
    return Strike(
        "credit_floor", f"the credit of {view.market} is {view.credit}, and {floor} of it must stay: top it up"
    )


def _whose(scope: Scope, window: Window) -> str:
    """Return the subject of a sentence about spend."""
    span = {Window.DAY: "today's", Window.MONTH: "this month's"}.get(window, "the whole")
    return f"{span} committed spend" + (f" of {scope}" if scope.name else "")


def strike(
    decision: Decision, fleet: Fleet, now_standing: CommittedSpend, limits: Limits, faulty: Iterable[str]
) -> Strike | None:
    """Return the first limit that forbids `decision`, or None."""
    if not raises_spend(decision):
        return None
    struck = _first(decision, fleet, now_standing, limits, faulty)
    return None if struck is None else replace(struck, sentence=struck.sentence + _apart(decision))


def _apart(decision: Decision) -> str:
    """Return the limit and the expected price of a bid, where the price paid is not the bid."""
    if isinstance(decision, Rent) and decision.is_limit:
        price = "unknown" if decision.expected is None else f"{decision.expected}"
        return f" (at its limit of {decision.bid}; the expected price is {price})"
    if isinstance(decision, Rebid | Resume) and decision.lease.bid_limit is not None:
        limit = decision.bid if isinstance(decision, Rebid) else decision.lease.bid_limit
        return f" (at its limit of {limit}; the expected price is {decision.lease.gpu_rate})"
    return ""


def _first(
    decision: Decision, fleet: Fleet, now_standing: CommittedSpend, limits: Limits, faulty: Iterable[str]
) -> Strike | None:
    view = fleet.markets.get(_market_of(decision))
    veto = _of_view(view, decision, faulty) or (under_credit_floor(view, limits) if view is not None else None)
    if veto is not None:
        return veto
    pledge = pledged(decision, fleet.workload(decision.slot.workload)) if isinstance(decision, Rent) else money.ZERO
    after = now_standing.after(decision, pledge)
    scopes = (EVERYTHING, *standings.scopes_of(decision))
    spent = (over_budget(now_standing, limits, scope) for scope in scopes)
    veto = next((each for each in spent if each is not None), None) or _of_price(decision, fleet, limits)
    rates = (_of_rate(after, limits, scope) for scope in scopes)
    veto = veto or next((each for each in rates if each is not None), None)
    return veto or _of_count(now_standing, after, limits) or _of_reserve(decision, fleet, after, limits, scopes)


def forbids_all(
    view: MarketView, work: Workload, now_standing: CommittedSpend, limits: Limits, faulty: Collection[str]
) -> bool:
    """Return whether nothing may be rented on a market for a workload now, for any offer.

    A stale view forbids nothing.
    """
    is_unpaid = unpaid(view) is not None or _of_no_credit(view) is not None
    if view.market in faulty or is_unpaid or under_credit_floor(view, limits) is not None:
        return True
    # A bid that waits for its first machine may give its room to what could run at once.
    if limits.instances is not None and now_standing.instances - now_standing.queued >= limits.instances:
        return True
    scopes = (EVERYTHING, budget.of_market(view.market), budget.of_workload(work.name))
    return any(over_budget(now_standing, limits, scope) is not None for scope in scopes)


def pledged(decision: Rent, work: Workload | None) -> Usd:
    """Return the immediate cost of a rent: the image and the checkpoint, at the offer's price per gigabyte."""
    if work is None:
        return money.ZERO
    return Usd(round((work.image_gb + work.checkpoint.size_gb) * decision.offer.traffic_down_micros_per_gb))


def _market_of(decision: Decision) -> str:
    if isinstance(decision, Rent):
        return decision.offer.market
    return decision.lease.market if isinstance(decision, Rebid | Resume) else ""


def unpaid(view: MarketView) -> Strike | None:
    """Return why nothing may be paid for at a market until a person changes something, or None."""
    if view.no_spend_because:
        return Strike("no_spend", view.no_spend_because)
    if is_skewed(view):
        return Strike("clock_skew", f"our clock is {skew(view)}: `timedatectl set-ntp true` sets it")
    return None


def skew(view: MarketView) -> str:
    """Return how far our clock is from the market's, and on which side."""
    side = "behind" if view.clock_skew_seconds > 0 else "ahead of"
    return f"{timedelta(seconds=round(abs(view.clock_skew_seconds)))} {side} the market's"


def is_skewed(view: MarketView) -> bool:
    """Return whether our clock and the market's are too far apart to believe either."""
    return view.is_skewed


def _of_view(view: MarketView | None, decision: Decision, faulty: Iterable[str]) -> Strike | None:
    if view is None or view.listings == 0:
        return Strike("no_listing", "no complete listing has been read since the start")
    if not view.is_fresh:
        return Strike("stale_view", "the market's listing could not be read in this cycle")
    if isinstance(decision, Rent) and view.market in faulty:
        return Strike(
            "market_fault", "several leases vanished at once: nothing is replaced until the listing is complete"
        )
    return unpaid(view) or _of_no_credit(view)


def _of_no_credit(view: MarketView) -> Strike | None:
    if view.credit is not None and view.credit.micros <= 0:
        return Strike("no_credit", f"the account's credit is {view.credit}: top it up")
    return None


def _of_price(decision: Decision, fleet: Fleet, limits: Limits) -> Strike | None:
    price, cap = _price(decision), limits.per_instance_hour
    if cap is not None and price > cap:
        return Strike("per_instance_hour", f"{price} is above the cap of {cap} per instance")
    return _of_workload(decision, fleet, price)


def _of_workload(decision: Decision, fleet: Fleet, price: UsdPerHour) -> Strike | None:
    """Return a strike for a rent or a raise above the workload's own price, whatever strategy proposes it."""
    if not isinstance(decision, Rent | Rebid):
        return None
    work = fleet.workload(slot_of(decision).workload)
    model = decision.offer.gpu if isinstance(decision, Rent) else decision.lease.gpu
    if work is None or price <= work.price_of(model):
        return None
    return Strike("max_price", f"{price} is above the {work.price_of(model)} that {work.name} may pay for {model}")


def _of_rate(after: CommittedSpend, limits: Limits, scope: Scope) -> Strike | None:
    cap, rate = limits.hard(scope).per_hour, after.of(scope).rate
    if cap is None or rate <= cap:
        return None
    whose = f"the {scope}" if scope.name else "the fleet"
    return Strike(scope.prefix + Window.HOUR.value, f"{whose} would cost {rate}, above the cap of {cap}")


def _of_count(before: CommittedSpend, after: CommittedSpend, limits: Limits) -> Strike | None:
    if limits.instances is None or after.instances <= max(limits.instances, before.instances):
        return None
    queued = f", {before.queued} of them bids that any auction may start" if before.queued else ""
    return Strike("instances", f"{before.instances} instances are held{queued}, and {limits.instances} are allowed")


def _of_reserve(
    decision: Decision, fleet: Fleet, after: CommittedSpend, limits: Limits, scopes: Iterable[Scope]
) -> Strike | None:
    """Return a strike if a budget could not pay for all commitments, else None.

    They count until the reserve's horizon; in an array's own budget, until its live tasks and the new one are done.
    """
    for scope in scopes:
        part, hard = after.of(scope), limits.hard(scope)
        of_tasks = task_reserve.set_aside(decision, fleet, after, scope) if hard != Thresholds() else None
        for window in SUMS:
            cap = hard.amount(window)
            if cap is None or (of_tasks is None and not limits.reserve):
                continue
            held = ahead(part, window, fleet, limits) if of_tasks is None else of_tasks
            what = "commitments" if of_tasks is None else "tasks that are live or begin"
            if part.spent(window) + held > cap:
                sentence = f"{_whose(scope, window)} {part.spent(window)} and {held} set aside for {what}"
                return Strike(scope.prefix + window.value, f"{sentence} would pass the cap of {cap}")
    view = fleet.markets.get(_market_of(decision))
    return None if view is None else _of_credit(view, after, limits)


def ahead(part: CommittedSpend, window: Window, fleet: Fleet, limits: Limits) -> Usd:
    """Return the possible cost of commitments within the reserve's horizon and the window, with traffic under way."""
    end = budget.end(window, fleet.now)
    left = limits.reserve if end is None else min(limits.reserve, end - fleet.now)
    return part.rate.over(left.total_seconds()) + part.pledged


def _of_credit(view: MarketView, after: CommittedSpend, limits: Limits) -> Strike | None:
    floor, part = limits.credit_floor(view.market), after.of(Scope(Kind.MARKET, view.market))
    if floor is None or view.credit is None:
        return None
    held = part.rate.over(limits.reserve.total_seconds()) + part.pledged
    if view.credit - held >= floor:
        return None
    sentence = f"the credit of {view.market} is {view.credit}; {held} set aside for commitments would leave less than"
    return Strike("credit_floor", f"{sentence} the {floor} that must stay: top it up")


def _price(decision: Decision) -> UsdPerHour:
    if isinstance(decision, Rent):
        return decision.rate
    if isinstance(decision, Rebid):
        return decision.bid + decision.lease.disk_rate
    return decision.lease.most_gpu_rate + decision.lease.disk_rate if isinstance(decision, Resume) else money.FREE
