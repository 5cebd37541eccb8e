"""Starts of ours that no answer and no listing has settled: until then a stopped lease may begin to bill."""

from collections.abc import Collection, Iterable

from agent.domain.record.intent import Intent, IntentKind
from agent.domain.record.lease import Lease
from agent.domain.record.tally import Counted, Tally

STARTS = frozenset({IntentKind.RESUME, IntentKind.REBID})
"""Orders that may start a stopped lease. Some markets take a higher bid as a start."""


def of(lease: Lease, intents: Iterable[Intent], tallies: Collection[Tally]) -> tuple[Intent, ...]:
    """Return the open starts of a lease that no confirmed pause of ours has taken back."""
    mine = [each for each in intents if each.lease_id == lease.lease_id and each.is_open and each.kind in STARTS]
    if not mine:
        return ()
    taken_back = {each.of for each in tallies if each.counted is Counted.TAKEN_BACK}
    return tuple(each for each in mine if each.intent_id not in taken_back)


def is_stopped(lease: Lease, intents: Iterable[Intent], tallies: Collection[Tally]) -> bool:
    """Return whether a lease is down and no start of ours may end that."""
    return lease.is_down and not of(lease, intents, tallies)
