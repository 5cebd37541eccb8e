"""The slots for which a strategy chooses again, because a cap on rates forbade the start that it chose.

Invariants:
1. A slot of which something runs keeps it: only the start of an idle slot is chosen again, and only as a rent.
2. All first choices of a plan come before any second one.
"""

from collections.abc import Iterable

from agent.decide.strategy import Proposal
from agent.domain.record.budget import Window
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold

PER_INSTANCE = "per_instance_hour"


def places(decisions: Iterable[Decision], forbidden: Iterable[Proposal]) -> frozenset[Slot]:
    """Return the slots whose rent is among the `forbidden` starts, and was forbidden by a cap on a rate."""
    held = {each.slot for each in decisions if isinstance(each, Hold) and _is_of_rate(each.reason.limit)}
    return frozenset(proposal.slot for proposal in forbidden if proposal.candidate is not None) & held


def _is_of_rate(limit: str) -> bool:
    return limit == PER_INSTANCE or limit.endswith(Window.HOUR.value)
