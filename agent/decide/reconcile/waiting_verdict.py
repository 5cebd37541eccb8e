"""The mark of a held instance of ours that waits for its verdict, kept in the end reason of its lease.

Invariant: only the verdict, a person's order or the end of the lease takes the mark away. What befalls the instance
meanwhile is written behind it, so that the verdict is found again in every cycle (rule 19).
"""

from dataclasses import replace

import msgspec

from agent.decide.facts import LeaseChanged
from agent.domain.record.lease import Lease, LeaseState

MARK = "undecided"
"""Nobody knows yet whether the slot is filled. The reason of a failed lease follows."""
_THEN = "; "


def is_due(lease: Lease) -> bool:
    """Return whether a held lease waits for its verdict."""
    is_marked = lease.end_reason.partition(_THEN)[0] == MARK
    return lease.is_held and is_marked and lease.is_open and lease.state is not LeaseState.RELEASING


def own_reason(lease: Lease) -> str:
    """Return the end reason of a lease without the mark."""
    mark, _, reason = lease.end_reason.partition(_THEN)
    return reason if mark == MARK else lease.end_reason


def marked(lease: Lease) -> Lease:
    """Return a lease that waits for its verdict; a failed one keeps its reason, which decides after its adoption."""
    return msgspec.structs.replace(lease, end_reason=MARK + _THEN + lease.end_reason if lease.end_reason else MARK)


def unmarked(lease: Lease) -> Lease:
    """Return the lease as it is judged by its row."""
    return msgspec.structs.replace(lease, end_reason=own_reason(lease)) if is_due(lease) else lease


def kept(fact: LeaseChanged, lease: Lease) -> LeaseChanged:
    """Return a change of `unmarked(held)` with the mark that `held` has."""
    return replace(fact, before=marked(fact.before), after=marked(fact.after)) if is_due(lease) else fact
