"""A limit that is lowered until every cap holds: the price paid may be far below it, so a lower limit may still win.

A stopped bid whose start a cap forbids at its limit is first changed to a limit at which it may start.
"""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from agent.decide.pricing.value_limit import CENT
from agent.domain.money import UsdPerHour
from agent.domain.work.decision import Decision, Rebid, Rent, Resume

Step = Rent | Rebid | Resume
START_CODE = "start_limit"
"""The code of the change of a stopped bid's limit to one at which it may start."""


def within(
    decision: Decision, is_allowed: Callable[[Step], bool], price: UsdPerHour | None = None
) -> Rent | Rebid | None:
    """Return a decision with the highest limit that is allowed; None without a limit, or if no useful one is allowed.

    `is_allowed` must hold for every limit below one for which it holds. A limit below the expected price is of no use,
    and neither is a raise to less than the present limit. `price` is what a stopped bid needs to win, if it is known.
    """
    least, most = _span(decision, price)
    if not isinstance(decision, Rent | Rebid | Resume) or least > most or not is_allowed(_at(decision, least)):
        return None
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if is_allowed(_at(decision, middle)) else (least, middle - 1)
    cut = _at(decision, least)
    return _before_start(decision, cut.lease.bid) if isinstance(cut, Resume) else _said(cut)


def _span(decision: Decision, price: UsdPerHour | None) -> tuple[int, int]:
    """Return the lowest and the highest limit of use, in whole cents."""
    if isinstance(decision, Rent) and decision.is_limit and decision.bid is not None:
        expected = decision.expected.micros if decision.expected is not None else 1
        return max(-(-expected // CENT.micros), 1), decision.bid.micros // CENT.micros
    if isinstance(decision, Rebid) and decision.lease.bid_limit is not None:
        return decision.lease.bid_limit.micros // CENT.micros + 1, decision.bid.micros // CENT.micros
    if isinstance(decision, Resume) and decision.lease.bid_limit is not None:
        needed = decision.lease.gpu_rate if price is None else price
        return max(-(-needed.micros // CENT.micros), 1), decision.lease.bid_limit.micros // CENT.micros - 1
    return 1, 0


def _at(decision: Step, cents: int) -> Step:
    bid = UsdPerHour(cents * CENT.micros)
    if isinstance(decision, Resume):
        lease = msgspec.structs.replace(decision.lease, bid_limit=bid, gpu_rate=min(decision.lease.gpu_rate, bid))
        return replace(decision, lease=lease)
    if isinstance(decision, Rebid) or decision.bid is None:
        return replace(decision, bid=bid)
    return replace(decision, bid=bid, rate=decision.rate - decision.bid + bid)


def _before_start(decision: Decision, limit: UsdPerHour) -> Rebid | None:
    """Return the change of the limit of a stopped bid to one at which a later plan may start it."""
    if not isinstance(decision, Resume):
        return None
    why = decision.reason
    sentence = f"cut the limit to {limit}, at which every cap allows a start; then {why.sentence}"
    return Rebid(decision.lease, limit, replace(why, code=START_CODE, sentence=sentence))


def _said(decision: Rent | Rebid) -> Rent | Rebid:
    why = decision.reason
    sentence = f"{why.sentence}; the limit is cut to {decision.bid}, which every cap allows"
    return replace(decision, reason=replace(why, sentence=sentence))
