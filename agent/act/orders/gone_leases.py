"""The leases that end when a person says that nothing is left of an instance.

While a lease is being released, its slot may already run on another lease. The person never means that other lease.
"""

from collections.abc import Iterable

from agent.act.orders.order_error import OrderError
from agent.domain.record.hold import Target, TargetKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import GONE, Reason, Release

_MAY_BE_GONE = frozenset({LeaseState.MISSING, LeaseState.OFFLINE})


def releases(target: Target, leases: Iterable[Lease]) -> tuple[Release, ...]:
    """Return the releases of the leases of a target that may be gone; a lease that is named is always meant.

    Raises:
        OrderError: none of them is being released, missing or offline.
    """
    reason, found = Reason(GONE, "a person says that nothing of it is left"), tuple(leases)
    is_named = target.kind is TargetKind.LEASE
    leaving = [lease for lease in found if lease.state is LeaseState.RELEASING]
    meant = leaving or [lease for lease in found if is_named or lease.state in _MAY_BE_GONE]
    if meant:
        return tuple(Release(lease, reason) for lease in meant)
    names = ", ".join(f"{lease.lease_id} is {lease.state.value}" for lease in found)
    sentence = f"no lease of {target.spoken} can be gone: {names}; if one is, name it: `gpubid release LEASE --gone`"
    raise OrderError("none_gone", sentence)
