"""Point 4: a missing instance that no longer exists counts until an order ends it, however late (spend-bounds.md).

Without an order it is given up by listings alone, and counts up to the first that lacked it: it adds nothing here.
An order for what is not proven ours is recorded and never leaves (rule 18). The ledger then has the order's time, no
longer that of the listing, so it counts up to the first listing that lacked it in the process that gives it up.
"""

import dataclasses
from collections.abc import Collection

from agent.decide.facts import LeaseDisowned
from agent.domain.record.lease import LeaseState
from tests.disasters.orders import Order
from tests.disasters.sight import Sight

ENDS = frozenset({"release", "pause"})


@dataclasses.dataclass(slots=True)
class Missing:
    """An instance that is no more. `until` ends the time for which the bound has grown already, at `rate` an hour."""

    until: float
    rate: float
    is_ordered: bool = False
    lacked: float = 0.0
    """Seconds of true listings after the first `until`, in one life of the process."""
    first_lacked: float = 0.0
    """When a true listing first lacked it in this life of the process; 0 for not yet."""


class Fading:
    """Knows what may still be missing. `patience` is how long listings must lack it after that until it is given up."""

    def __init__(self, poll: float, patience: float) -> None:
        self._poll = poll
        self._patience = patience
        self._missing: dict[tuple[str, str], Missing] = {}

    def begin(self, key: tuple[str, str], until: float, rate: float) -> None:
        """See that an instance is no more."""
        self._missing[key] = Missing(until, rate)

    def hear(self, order: Order) -> None:
        """See an order of ours, whether the market gets it or not."""
        missing = self._missing.get((order.market, order.target))
        if missing is not None and order.kind in ENDS:
            missing.is_ordered = True

    def forget(self) -> None:
        """See that the process ends: the next one counts from nothing how long listings lack it."""
        for missing in self._missing.values():
            missing.lacked = missing.first_lacked = 0.0

    def show(self, shown: Collection[tuple[str, str]], now: float) -> float:
        """See that a stale listing shows what is no more: it ran all the time, and does until a true one lacks it.

        Return the dollars by which that raises the bound.
        """
        grown = 0.0
        for missing in (missing for key, missing in self._missing.items() if key in shown):
            grown += missing.rate * max(now - missing.until, 0.0) / 3600
            missing.until, missing.lacked, missing.first_lacked = max(missing.until, now), 0.0, 0.0
        return grown

    def grow(self, sight: Sight, passed: float) -> float:
        """Return the dollars by which orders that came after all patience raise the bound."""
        grown, withheld = 0.0, _withheld(sight)
        for key, missing in list(self._missing.items()):
            late = max(sight.now - missing.until, 0.0)
            if missing.is_ordered:
                grown += missing.rate * late / 3600
                missing.until, missing.is_ordered = max(missing.until, sight.now), False
            if late and self._is_lacked(sight, key[0]):
                missing.lacked += min(passed, self._poll)
                missing.first_lacked = missing.first_lacked or sight.now
            if key in withheld:
                grown += missing.rate * max(missing.first_lacked - missing.until, 0.0) / 3600
                missing.until = max(missing.until, missing.first_lacked)
            if missing.lacked > self._patience:
                del self._missing[key]
        return grown

    def _is_lacked(self, sight: Sight, market: str) -> bool:
        """Return whether a listing lacked it, and the ledger took what follows from that."""
        return sight.saw_truly(market) and not any(each.market == "ledger" for each in sight.struck)


def _withheld(sight: Sight) -> set[tuple[str, str]]:
    """Return the instances whose recorded end no order may ask of the market, also those that were just given up."""
    facts = sight.app.seen.facts if sight.has_ended and sight.app.seen is not None else ()
    disowned = (fact.lease for fact in facts if isinstance(fact, LeaseDisowned))
    ending = (lease for lease in (*sight.leases, *disowned) if lease.state is LeaseState.RELEASING)
    return {(lease.market, lease.instance_id) for lease in ending if not lease.is_proven}
