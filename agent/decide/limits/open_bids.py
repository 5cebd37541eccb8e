"""At most one bid of a slot waits for an auction: two that win at the same one would both bill."""

from collections.abc import Iterator

from agent.domain.fleet import Fleet
from agent.domain.work.decision import Pause, Reason

CODE = "one_open_bid"


def endings(fleet: Fleet) -> Iterator[Pause]:
    """Yield the pauses of older bids that wait for an auction beside a newer one of their slot."""
    waiting = [lease for lease in fleet.leases if lease.is_open_bid and not lease.is_held and fleet.is_seen(lease)]
    for lease in waiting:
        newer = fleet.leases_of(lease.slot)[-1]
        if newer is not lease and newer.is_open_bid:
            sentence = f"its slot bids on host {newer.host_id} now: two bids that win at one auction would both bill"
            yield Pause(lease, Reason(CODE, sentence))
