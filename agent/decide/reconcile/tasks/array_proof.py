"""Whether an array has proved itself: until then a failure may be the fault of its command, then only of one task.

Invariant: the proof is kept. An array whose leases were all lost does not begin to be doubted again (rule 19).
"""

from collections.abc import Iterator
from datetime import timedelta

from agent.decide.facts import Marked
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.record.hold import Holds, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.work.workload import Workload

PROVEN_AFTER = timedelta(minutes=10)
"""An array has proved itself once one of its slots has run for this long, or is done."""
KEPT = timedelta(days=30)
"""How long the proof by a run is kept; the mark of a slot that is done lasts longer."""


def has_proved_itself(fleet: Fleet, work: Workload, holds: Holds) -> bool:
    """Return whether a slot of an array is done, or has run for long enough."""
    if any(word is Word.DONE and target.workload == work.name for word, target in holds):
        return True
    return _is_kept(fleet, work) or _runs_long(fleet, work)


def marks(fleet: Fleet) -> Iterator[Marked]:
    """Yield the mark of each array that has just proved itself by a run."""
    for work in fleet.workloads:
        if work.array is not None and not _is_kept(fleet, work) and _runs_long(fleet, work):
            why = f"a slot has run for {span_text.of(PROVEN_AFTER)}"
            yield Marked(Tally(Counted.RAN, work.name, fleet.now, fleet.now + KEPT, why), work.name, None, None)


def _is_kept(fleet: Fleet, work: Workload) -> bool:
    proofs = (each for each in fleet.tallies if each.counted is Counted.RAN and each.of == work.name)
    return any(not each.is_over(fleet.now) for each in proofs)


def _runs_long(fleet: Fleet, work: Workload) -> bool:
    return any(_has_run_long(lease, fleet) for lease in fleet.leases if lease.slot.workload == work.name)


def _has_run_long(lease: Lease, fleet: Fleet) -> bool:
    is_running = lease.state is LeaseState.RUNNING and lease.run_since is not None
    return is_running and lease.run_since is not None and fleet.now - lease.run_since >= PROVEN_AFTER
