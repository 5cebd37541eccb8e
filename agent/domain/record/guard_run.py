"""The run of a slot: one life of its work, from nothing to its end; the guard keeps each in a folder of its own."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class GuardRun:
    """One run. A new one begins with nothing: what an earlier one kept stays in the bucket and is not restored."""

    slot: Slot
    run: int
    """Counted from 1."""
    name: str
    """The workload's name when it began, which stays in the folder's name when the workload is renamed."""
    spec_digest: str
    """The digest of the spec that it began with."""
    begun_at: datetime

    def folder(self, fleet_id: str) -> str:
        """Return its folder within the bucket's, without slashes at its ends."""
        return f"{fleet_id}/{self.name}/{self.slot.index}/{self.run}"
