"""Whatever the ledger remembers until a time: a hold, a cooldown, a tally, or a threshold that was told."""

from agent.domain.record.cooldown import Cooldown
from agent.domain.record.hold import OperatorHold
from agent.domain.record.tally import Tally
from agent.domain.record.told_crossing import ToldCrossing

Rest = OperatorHold | Cooldown | Tally | ToldCrossing
"""Each has a `place`, scope and key: two rests of one place are the same rest, and the longer one counts."""


def outlasts(one: Rest, other: Rest) -> bool:
    """Return whether a rest ends no sooner than another: of two without an end, whether it was given no sooner."""
    if one.until is not None and other.until is not None:
        return one.until >= other.until
    if isinstance(one, Cooldown) or isinstance(other, Cooldown) or one.until is not other.until:
        return one.until is None
    return one.since >= other.since
