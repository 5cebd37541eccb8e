"""The run of a slot: one execution of its work, from nothing to its end. The guard keeps each in its own folder."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class GuardRun:
    """One run. A new run begins with nothing: checkpoints of earlier runs stay in the bucket and are not restored."""

    slot: Slot
    run: int
    """Counted from 1."""
    name: str
    """The workload's name when the run began. The folder keeps it when the workload is renamed."""
    spec_digest: str
    """The digest of the workload's spec when the run began."""
    begun_at: datetime

    def folder(self, fleet_id: str) -> str:
        """Return its folder within the bucket's folder, without slashes at its ends."""
        return f"{fleet_id}/{self.name}/{self.slot.index}/{self.run}"
