"""At most one bid of a slot waits for an auction, and none beside its running lease: both would bill after it."""

from collections.abc import Iterator

from agent.domain.fleet import Fleet
from agent.domain.work.decision import Pause, Reason

CODE = "one_open_bid"


def endings(fleet: Fleet) -> Iterator[Pause]:
    """Yield the pauses of bids that wait for an auction beside a newer bid or lease of their slot."""
    waiting = [lease for lease in fleet.leases if lease.is_open_bid and not lease.is_held and fleet.is_seen(lease)]
    for lease in waiting:
        for newer in fleet.occupants_of(lease.slot)[-1:]:
            if newer is not lease and (newer.is_open_bid or newer.is_live):
                sentence = f"its slot has another place at {newer.host_id}: both would bill after the next auction"
                yield Pause(lease, Reason(CODE, sentence))
