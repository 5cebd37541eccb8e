"""Vetoes that outrank strategies: a view too old, the wrong clock, price, rate, budget, count; each gives its reason.

Invariants:
1. A limit only ever strikes what may raise spend; release and pause always pass.
2. Doubt counts as spend: an open paying intent counts with its whole rate since it was sent.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from agent.decide import meter
from agent.domain import money
from agent.domain.decision import Decision, Pause, Rebid, Rent, Resume, raises_spend
from agent.domain.fleet import Fleet, MarketView
from agent.domain.intent import Intent
from agent.domain.lease import Lease
from agent.domain.money import Usd, UsdPerHour

MOST_SKEW_SECONDS = 60.0
"""A wall clock further off the market's own misplaces budget days and evidence."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What may never be exceeded, whatever a strategy proposes; None means no limit of that kind."""

    per_instance_hour: UsdPerHour | None = None
    per_hour: UsdPerHour | None = None
    per_day: Usd | None = None
    per_month: Usd | None = None
    instances: int | None = None


@dataclass(frozen=True, slots=True)
class Strike:
    """Why a decision may not be carried out now."""

    limit: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What is committed already: per hour, today, this month, and how many instances."""

    rate: UsdPerHour
    today: Usd
    month: Usd
    instances: int

    def after(self, decision: Decision) -> "Standing":
        """Return what will be committed once `decision` is carried out."""
        if isinstance(decision, Rent):
            return replace(self, rate=self.rate + decision.rate, instances=self.instances + 1)
        if isinstance(decision, Rebid):
            return replace(self, rate=self.rate + (decision.bid - decision.lease.gpu_rate))
        if isinstance(decision, Resume):
            return replace(self, rate=self.rate + _resumed(decision.lease))
        if isinstance(decision, Pause):
            return replace(self, rate=self.rate - (decision.lease.committed_rate - decision.lease.disk_rate))
        return self


def standing(fleet: Fleet) -> Standing:
    """Return what the fleet has committed, leases and doubt together."""
    leases = {lease.lease_id: lease for lease in fleet.leases if lease.is_open}
    doubts = [intent for intent in fleet.intents if intent.is_open and intent.kind.is_paying]
    more = [(intent, _beyond(intent, leases.get(intent.lease_id))) for intent in doubts]
    doubted = (rate.over(_seconds_since_sent(intent, fleet.now)) for intent, rate in more)
    owed = meter.outstanding(leases.values(), fleet.now) + money.total(doubted)
    return Standing(
        rate=money.total_rate([lease.committed_rate for lease in leases.values()] + [rate for _, rate in more]),
        today=fleet.spend.today + owed,
        month=fleet.spend.month + owed,
        instances=len(leases) + sum(not intent.lease_id for intent in doubts),
    )


def _beyond(intent: Intent, held: Lease | None) -> UsdPerHour:
    """Return what a doubted order may cost per hour beyond what its lease is committed to already."""
    if held is None:
        return intent.rate if not intent.lease_id else money.FREE
    return max(money.FREE, intent.rate - held.committed_rate)


def _seconds_since_sent(intent: Intent, now: datetime) -> float:
    return max(0.0, (now - (intent.sent_at or intent.recorded_at)).total_seconds())


def _resumed(held: Lease) -> UsdPerHour:
    return held.gpu_rate if held.paused_by_us else money.FREE


def over_budget(now_standing: Standing, limits: Limits) -> Strike | None:
    """Return the budget that is used up, if any: then what runs is paused too."""
    if limits.per_day is not None and now_standing.today >= limits.per_day:
        return Strike(
            "per_day", f"today's committed spend {now_standing.today} has reached the cap of {limits.per_day}"
        )
    if limits.per_month is not None and now_standing.month >= limits.per_month:
        return Strike("per_month", f"this month's committed spend {now_standing.month} has reached {limits.per_month}")
    return None


def strike(
    decision: Decision, fleet: Fleet, now_standing: Standing, limits: Limits, faulty: Iterable[str]
) -> Strike | None:
    """Return the first limit that forbids `decision`, or None."""
    if not raises_spend(decision):
        return None
    view = fleet.markets.get(_market_of(decision))
    found = _of_view(view, decision, faulty) or over_budget(now_standing, limits)
    return found or _of_rate(decision, now_standing, limits)


def _market_of(decision: Decision) -> str:
    if isinstance(decision, Rent):
        return decision.offer.market
    return decision.lease.market if isinstance(decision, Rebid | Resume) else ""


def _of_view(view: MarketView | None, decision: Decision, faulty: Iterable[str]) -> Strike | None:
    if view is None or view.listings == 0:
        return Strike("no_listing", "no complete listing has been read since the start")
    if not view.is_fresh:
        return Strike("stale_view", "the market's listing could not be read in this cycle")
    if view.no_spend_because:
        return Strike("no_spend", view.no_spend_because)
    if isinstance(decision, Rent) and view.market in faulty:
        return Strike("market_fault", "several leases vanished at once: nothing is replaced until the listing is whole")
    if abs(view.clock_skew_seconds) > MOST_SKEW_SECONDS:
        return Strike("clock_skew", f"our clock is {view.clock_skew_seconds:+.0f} s off the market's: set the clock")
    if view.credit is not None and view.credit.micros <= 0:
        return Strike("no_credit", f"the account's credit is {view.credit}: top it up")
    return None


def _of_rate(decision: Decision, now_standing: Standing, limits: Limits) -> Strike | None:
    price = _price(decision)
    if limits.per_instance_hour is not None and price > limits.per_instance_hour:
        return Strike("per_instance_hour", f"{price} is above the cap of {limits.per_instance_hour} per instance")
    after = now_standing.after(decision)
    if limits.per_hour is not None and after.rate > limits.per_hour:
        return Strike("per_hour", f"the fleet would cost {after.rate}, above the cap of {limits.per_hour}")
    if limits.instances is not None and after.instances > max(limits.instances, now_standing.instances):
        return Strike("instances", f"{now_standing.instances} instances are held, and {limits.instances} are allowed")
    return None


def _price(decision: Decision) -> UsdPerHour:
    if isinstance(decision, Rent):
        return decision.rate
    if isinstance(decision, Rebid):
        return decision.bid + decision.lease.disk_rate
    return decision.lease.gpu_rate + decision.lease.disk_rate if isinstance(decision, Resume) else money.FREE
