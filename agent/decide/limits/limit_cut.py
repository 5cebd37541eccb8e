"""A limit that is lowered until every cap holds: the price paid may be far below it, so a lower limit may still win."""

from collections.abc import Callable
from dataclasses import replace

from agent.decide.pricing.value_limit import CENT
from agent.domain.money import UsdPerHour
from agent.domain.work.decision import Decision, Rebid, Rent


def within(decision: Decision, is_allowed: Callable[[Rent | Rebid], bool]) -> Rent | Rebid | None:
    """Return a decision with the highest limit that is allowed; None without a limit, or if no useful one is allowed.

    `is_allowed` must hold for every limit below one for which it holds. A limit below the expected price is of no use,
    and neither is a raise to less than the present limit.
    """
    least, most = _span(decision)
    if not isinstance(decision, Rent | Rebid) or least > most or not is_allowed(_at(decision, least)):
        return None
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if is_allowed(_at(decision, middle)) else (least, middle - 1)
    return _said(_at(decision, least))


def _span(decision: Decision) -> tuple[int, int]:
    """Return the lowest and the highest limit of use, in whole cents."""
    if isinstance(decision, Rent) and decision.is_limit and decision.bid is not None:
        expected = decision.expected.micros if decision.expected is not None else 1
        return max(-(-expected // CENT.micros), 1), decision.bid.micros // CENT.micros
    if isinstance(decision, Rebid) and decision.lease.bid_limit is not None:
        return decision.lease.bid_limit.micros // CENT.micros + 1, decision.bid.micros // CENT.micros
    return 1, 0


def _at(decision: Rent | Rebid, cents: int) -> Rent | Rebid:
    bid = UsdPerHour(cents * CENT.micros)
    if isinstance(decision, Rebid) or decision.bid is None:
        return replace(decision, bid=bid)
    return replace(decision, bid=bid, rate=decision.rate - decision.bid + bid)


def _said(decision: Rent | Rebid) -> Rent | Rebid:
    why = decision.reason
    sentence = f"{why.sentence}; the limit is cut to {decision.bid}, which every cap allows"
    return replace(decision, reason=replace(why, sentence=sentence))
