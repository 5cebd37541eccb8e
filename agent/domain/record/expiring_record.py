"""The records that the ledger keeps until a time: holds, cooldowns, tallies, and reported thresholds."""

from agent.domain.record.cooldown import Cooldown
from agent.domain.record.hold import OperatorHold
from agent.domain.record.reported_crossing import ReportedCrossing
from agent.domain.record.tally import Tally

ExpiringRecord = OperatorHold | Cooldown | Tally | ReportedCrossing
"""Each has a `place` (scope and key). Two records of one place are the same record, and the longer one counts."""


def outlasts(one: ExpiringRecord, other: ExpiringRecord) -> bool:
    """Return whether one record ends no sooner than another. Of two without an end, the later one counts."""
    if one.until is not None and other.until is not None:
        return one.until >= other.until
    if isinstance(one, Cooldown) or isinstance(other, Cooldown) or one.until is not other.until:
        return one.until is None
    return one.since >= other.since
