"""Whatever the ledger remembers until a time: a hold, a cooldown or a tally."""

from agent.domain.record.cooldown import Cooldown
from agent.domain.record.hold import OperatorHold
from agent.domain.record.tally import Tally

Rest = OperatorHold | Cooldown | Tally
"""Each has a `place`, scope and key: two rests of one place are the same rest, and the longer one counts."""


def outlasts(one: Rest, other: Rest) -> bool:
    """Tell whether a rest ends no sooner than another: of two without an end, whether it was given no sooner."""
    if isinstance(one, OperatorHold) and isinstance(other, OperatorHold) and one.until is None and other.until is None:
        return one.since >= other.since
    return one.until is None or (other.until is not None and one.until >= other.until)
