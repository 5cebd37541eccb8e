"""Point 3: a lease is given up for a report of its own guard only, and only if the workload asks for that."""

from agent.decide.reconcile.guards import acceptance_verdict, guard_refusal
from agent.domain.work.guard_terms import Accept
from tests.disasters.guards import host_lies
from tests.disasters.guards.guard_world import GuardWorld
from tests.disasters.sight import Sight
from tests.disasters.truth import Box


class Checks:
    """Remembers which workloads ever rejected hosts."""

    def __init__(self, guards: GuardWorld | None) -> None:
        self._guards = guards
        self._rejecting: set[str] = set()

    def see(self, sight: Sight) -> None:
        """Take in the present files."""
        for work in sight.app.rules.workloads:
            if work.guard is not None and work.guard.accept is Accept.REJECT:
                self._rejecting.add(work.name)

    def untrue(self, box: Box, code: str) -> str:
        """Return why a release for the word of a guard is not true, or nothing."""
        guard = self._guards.guard_of(box) if self._guards is not None else None
        if code.startswith(acceptance_verdict.REJECTED):
            is_wanted = box.label is not None and box.label.slot.workload in self._rejecting
            is_said = guard is not None and bool(guard.lies.has_lied & set(host_lies.OF_CHECKS))
            return (
                ""
                if is_wanted and is_said
                else f"recorded is {code!r}, and its guard said no such thing, or is not heeded"
            )
        if code.startswith(guard_refusal.GUARD_REFUSED):
            return "" if guard is not None and guard.has_refused else f"recorded is {code!r}, and its guard did start"
        return ""
