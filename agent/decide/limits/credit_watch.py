"""How long credit lasts at the present rate, and whether it falls faster than our leases explain.

Invariants:
1. From an unknown credit nothing is forecast, and an alert says that its floor cannot be kept. A market that is paid in
   arrears has no credit at all, and every sentence about it says that budgets alone stop the spending.
2. A drain is compared with our counted spend on that market since a mark. The mark is renewed when credit rises, and
   once a day.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from agent.decide.facts import Alert
from agent.decide.limits import limits
from agent.decide.limits.committed_spend import CommittedSpend
from agent.domain import money, span_text
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.market_rules import ASSUMED, MarketRules, Settlement
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record import budget
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease

SHORT = timedelta(days=1)
"""Warn if credit lasts less than this: a card can be charged within a day."""
MARK_KEPT = timedelta(days=1)
LEAST_DRAIN = money.usd("0.25")
"""A fall below this is ignored, since accounts are rounded and traffic is billed late."""
LAG_SECONDS = 3600.0
"""A fall of our own rate over this time is ignored too, since markets charge in lumps."""
IN_ARREARS = "{} sends its bill later: no credit ends the spending there, only budgets do"
"""The sentence about a market that is paid in arrears."""
LEAST_SHARE = 0.10
"""A fall of this share of our own count is ignored too."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """A market account's credit, the present rate of our leases there, and the floor of the credit."""

    market: str
    credit: Usd | None
    rate: UsdPerHour
    floor: Usd | None
    is_in_arrears: bool = False

    @property
    def lasts(self) -> timedelta | None:
        """How long credit lasts at this rate; None while nothing bills or credit is unknown."""
        if self.credit is None or self.rate.micros <= 0:
            return None
        hours = max(self.credit.micros, 0) / self.rate.micros
        return timedelta(hours=min(hours, 24.0 * 36500))

    def sentence(self) -> str:
        """Return a sentence for a person."""
        if self.credit is None:
            kept = "" if self.floor is None else f", so the {self.floor} that should stay there cannot be kept"
            if self.is_in_arrears:
                return f"{IN_ARREARS.format(self.market)}{kept}"
            return f"the credit of {self.market} is unknown{kept}"
        if self.lasts is None:
            return f"credit of {self.market} is {self.credit}, and nothing bills there now"
        lasts = span_text.minutes(self.lasts)
        return f"credit of {self.market}, {self.credit}, lasts {lasts} at the present rate of {self.rate}"


def outlook(
    market: str, credit: Usd | None, leases: Iterable[Lease], floor: Usd | None, rules: MarketRules = ASSUMED
) -> Outlook:
    """Return the outlook of one market from its credit and our leases."""
    mine = (lease.billing_rate for lease in leases if lease.market == market and lease.is_open)
    return Outlook(market, credit, money.total_rate(mine), floor, rules.settlement is Settlement.ARREARS)


def outlooks(fleet: Fleet, caps: limits.Limits) -> tuple[Outlook, ...]:
    """Return the outlook of every market whose account was read."""
    read = [view for name, view in sorted(fleet.markets.items()) if view.account_id]
    return tuple(
        outlook(view.market, view.credit, fleet.leases, caps.credit_floor(view.market), view.rules) for view in read
    )


def alerts(fleet: Fleet, caps: limits.Limits) -> Iterator[Alert]:
    """Yield an alert if credit lasts less than a day, or if a floor has no reported credit to be compared with."""
    for each in outlooks(fleet, caps):
        if each.credit is None and each.floor is not None:
            yield Alert(
                EventKind.ALERT_CREDIT_UNKNOWN, each.market, f"{each.sentence()}; watch it at the market itself"
            )
        elif each.lasts is not None and each.lasts < SHORT:
            yield Alert(EventKind.ALERT_CREDIT_SHORT, each.market, f"{each.sentence()}: top it up")


@dataclass(frozen=True, slots=True)
class Mark:
    """A market's credit, and our counted spend there, at an instant; `last` is the newest credit."""

    at: datetime
    credit: Usd
    counted: Usd
    last: Usd


def watch(marks: Mapping[str, Mark], fleet: Fleet, now: CommittedSpend) -> tuple[Mapping[str, Mark], tuple[Alert, ...]]:
    """Return the marks to keep, and an alert for each market whose credit fell by more than our leases explain."""
    kept = dict(marks)
    found: list[Alert] = []
    for name, view in sorted(fleet.markets.items()):
        if view.credit is None or not view.is_fresh:
            continue
        part = now.of(budget.of_market(name))
        mark = kept.get(name)
        if mark is None or view.credit > mark.last or fleet.now - mark.at >= MARK_KEPT:
            kept[name] = Mark(fleet.now, view.credit, part.total, view.credit)
            continue
        kept[name] = replace(mark, last=view.credit)
        found += _drained(mark, view, view.credit, part, fleet.now)
    return kept, tuple(found)


def _drained(mark: Mark, view: MarketView, credit: Usd, part: CommittedSpend, now: datetime) -> Iterator[Alert]:
    fell, counted = mark.credit - credit, part.total - mark.counted
    slack = max(LEAST_DRAIN, part.rate.over(LAG_SECONDS), Usd(round(counted.micros * LEAST_SHARE)))
    if fell - counted > slack:
        sentence = (
            f"the credit of {view.market} fell by {fell} within {span_text.minutes(now - mark.at)}, and our leases "
            f"explain {counted} of it: somebody else spends from this account, or the market has charges that it does "
            "not show; compare `gpubid spend` with the market's bill"
        )
        yield Alert(EventKind.ALERT_CREDIT_DRAIN, f"{view.market}@{mark.at.isoformat()}", sentence)
