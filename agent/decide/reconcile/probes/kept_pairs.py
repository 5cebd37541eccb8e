"""A slot that keeps both leases of a move: both ran, and the disk of each may hold the only checkpoint (rule 11).

No listing shows which of the two has the better work. Both stay, and both bill, until a person releases one.
"""

from collections.abc import Iterator, Sequence

from agent.decide.facts import Alert
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.only_copy import may_leave_at_a_price
from agent.domain.work.workload import Workload


def is_kept(fleet: Fleet, pair: Sequence[Lease], work: Workload | None) -> bool:
    """Return whether no rule releases any of the leases of a slot, which are more than one."""
    if work is None or len(pair) < 2:  # noqa: PLR2004
        return False
    return all(
        lease.has_run
        and lease.state is not LeaseState.RELEASING
        and fleet.is_seen(lease)
        and not may_leave_at_a_price(lease, work)
        for lease in pair
    )


def sentence(pair: Sequence[Lease]) -> str:
    """Return what such a slot has and costs, and the command that ends it."""
    named = " and ".join(f"{lease.lease_id} on host {lease.host_id}" for lease in pair)
    rate = money.total_rate(lease.billing_rate for lease in pair)
    ways = " or ".join(f"`gpubid release {lease.lease_id}`" for lease in reversed(pair))
    return (
        f"{pair[0].slot} has two leases that ran, {named}, and bills {rate} for both; the disk of each may hold the "
        f"only checkpoint: keep one, and release the other with {ways}"
    )


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each pair of leases that a slot keeps."""
    for work in fleet.workloads:
        for place in work.places:
            pair = fleet.occupants_of(place)
            if is_kept(fleet, pair, work):
                key = " ".join(lease.lease_id for lease in pair)
                yield Alert(EventKind.ALERT_TWO_LEASES, key, sentence(pair))
